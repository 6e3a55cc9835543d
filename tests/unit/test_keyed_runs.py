"""Events divided by key among several runs: matches, order and counters are those of one run."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path

import pytest

import spaseq
from spaseq import keyed_runs
from spaseq.cli import main
from spaseq.engine.key_division import KeyDivision, key_division
from spaseq.errors import InputError, SpaseqError
from spaseq.io.lines import Lines
from spaseq.io.native._match_blocks import PartMatches
from spaseq.io.read_options import ReadOptions
from spaseq.io.source import Source
from spaseq.keyed_runs import KeyedRuns, divided
from spaseq.pipeline import matches
from spaseq.sparql.registry import registry_restored

STREAM = "http://example.org/S"
XSD = "http://www.w3.org/2001/XMLSchema#"
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
EXAMPLES = max(20, int(os.environ.get("SPASEQ_EXAMPLES", "100")) // 2)


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Divide the events of small files, too; every thread ends with its run."""
    begin = Lines.__init__

    def small(self: Lines, path: str, stream: object = None, block: int | None = None) -> None:
        begin(self, path, stream, block or 1000)  # type: ignore[arg-type]

    monkeypatch.setattr(keyed_runs, "LEAST_BYTES", 0)
    monkeypatch.setattr(Lines, "__init__", small)
    yield
    assert not [one for one in threading.enumerate() if one.name.startswith("spaseq-part")]


def by_event(texts: Sequence[str]) -> list[tuple[object, list[str]]]:
    """The matches of each event, which have no order."""

    def last(text: str) -> object:
        return json.loads(text)["events"][-1]["graph"]

    return [(event, sorted(some)) for event, some in groupby(texts, last)]


# ------------------------------------------------------------------ drawn queries


def drawn_query(chance: random.Random) -> str:
    """A query whose matches share `?k`."""
    strict = chance.random() < 0.4
    steps = ["A"]
    for name in chance.sample("BCD", chance.randint(1, 3)):
        step = name + chance.choice(("", "", "", "+", "?", "{1,2}"))
        if chance.random() < 0.2:
            step = f"!{name}"
        elif chance.random() < 0.15:
            step = f"({name} | E)"
        steps.append(step)
    steps.append("F")
    operators = [";", ";", ":", ","] if strict else [";", ";", ":"]
    sequence = steps[0]
    for before, step in pairwise(steps):
        plain = step[0] == "!" or before[0] == "!" or "?" in step + before
        sequence += f" {';' if plain else chance.choice(operators)} {step}"
    later = chance.choice(("", "FILTER(?{0} > ?a)", "FILTER(?{0} != ?a)"))
    patterns = [
        f"DEFINE GPM {name} ON S {{ {drawn_pattern(name, chance)} "
        + (later.format(name.lower()) if name not in "AE" else "")
        + " }"
        for name in sorted({letter for letter in sequence if letter in "ABCDEF"})
    ]
    partition = "PARTITION BY ?k " if strict or chance.random() < 0.5 else ""
    emit = "EMIT STRICT " if partition and chance.random() < 0.1 else ""
    skip = "AFTER MATCH SKIP PAST LAST EVENT " if partition and chance.random() < 0.3 else ""
    window = chance.choice(("20 SECONDS", "30 SECONDS", "TUMBLING 25 SECONDS", "UNBOUNDED"))
    return (
        f"PREFIX : <http://example.org/> PREFIX xsd: <{XSD}> SELECT * WITHIN {window} {partition}"
        f"FROM STREAM S <{STREAM}> {emit}{skip} WHERE {{ SEQ({sequence}) {' '.join(patterns)} }}"
    )


def drawn_pattern(name: str, chance: random.Random) -> str:
    value = f"?{name.lower()}"
    return chance.choice(
        (
            f"?k :p{name} {value}",
            f"?k :p{name} {value}",
            f"?e :key ?k ; :p{name} {value}",
            f"?k :p{name} {value} OPTIONAL {{ ?k :more {value}x }}",
            f"{{ ?k :p{name} {value} }} UNION {{ ?e :key ?k ; :q{name} {value} }}",
            f"?k :p{name} {value} FILTER(STRLEN(STR({value})) = 1 && xsd:double({value}) > 0.5)",
            f"?k :p{name} {value} BIND(CONCAT(SUBSTR(MD5(STR({value})), 1, 2), 'x') AS {value}x)",
        )
    )


def drawn_events(chance: random.Random, count: int) -> Iterator[str]:
    """Events as N-Quads. Some have several keys or none, and some are simultaneous."""
    now = 0
    keys = [f"<http://example.org/k{n}>" for n in range(3)] + [f'"4"^^<{XSD}integer>']
    for number in range(count):
        graph = f"<http://example.org/g{number}>"
        now += chance.choice((0, 0, 1, 1, 2))
        yield f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{now}"^^<{XSD}integer> .\n'
        for part in range(chance.choice((1, 1, 2, 3))):
            about = key = chance.choice(keys)
            if key[0] != "<" or chance.random() < 0.3:
                about = f"<http://example.org/e{part}>"
                yield f"{about} <http://example.org/key> {key} {graph} .\n"
            predicate = chance.choice(("p", "p", "p", "q")) + chance.choice("ABCDEFF")
            if chance.random() < 0.9:
                value = f'"{chance.randrange(6)}"^^<{XSD}integer>'
                yield f"{about} <http://example.org/{predicate}> {value} {graph} .\n"


def found(program: spaseq.Program, path: Path, parts: int) -> tuple[object, dict[str, int]]:
    """The matches of a file by event, and some counters."""
    run = program.start()
    options = ReadOptions(workers=max(2, parts))
    source = Source(STREAM, [str(path)], options, relevance=run.relevance)
    engine = divided(run, program, [source]) if parts > 1 else run
    assert engine is not None
    texts = [match.to_json() for match in matches(engine, source)]
    stats = run.stats
    return by_event(texts), {name: stats[name] for name in ("events", "triples", "matches")}


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_drawn_queries(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    text = drawn_query(chance)
    program = spaseq.compile(text)
    division = key_division(program)
    if division == "its results are not made one by one at the last event of a match":
        return  # `(B | E)` and the like can find the same match twice
    assert isinstance(division, KeyDivision), division
    assert division.variable == "k"
    path = tmp_path / "events.nq"
    path.write_text("".join(drawn_events(chance, 150)), encoding="utf-8")
    one = found(program, path, 1)
    for parts in (2, 3):
        assert found(program, path, parts) == one, text


# ------------------------------------------------------------------ which queries

TEXT = (
    "PREFIX : <http://example.org/> SELECT ?k ?a ?b WITHIN 20 SECONDS "
    f"FROM STREAM S <{STREAM}> WHERE {{ SEQ(A ; B) "
    "DEFINE GPM A ON S { ?k :pA ?a } DEFINE GPM B ON S { ?k :pB ?b } }"
)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("SELECT ?k ?a ?b", "CONSTRUCT { ?k :x ?a }", "not made one by one"),
        ("?k :pA ?a", "?k ?p ?a", "no triple with ?k and a constant predicate"),
        ("?k :pA ?a", "?k :pA+ ?a", "no triple with ?k and a constant predicate"),
        ("?k :pA ?a", "?x :pA ?a", "no variable is bound by every step"),
        ("?k :pA ?a", "?k :pA ?a GRAPH :kb { ?k :x ?y }", "reads the knowledge base"),
        ("SELECT ?k", "SELECT DISTINCT ?k", "not made one by one"),
        ("A ; B", "A , B", "contiguity depends on the events of all keys"),
        ("20 SECONDS", "20 EVENTS", "counts the events of all keys"),
        ("ON S { ?k :pB", "ON T { ?k :pB", "several streams"),
    ],
)
def test_one_run_matches_all_other_queries(before: str, after: str, reason: str) -> None:
    assert before in TEXT
    text = TEXT.replace(before, after, 1)
    if "ON T" in after:
        text = text.replace("WHERE", "FROM STREAM T <http://example.org/T> WHERE")
    program = spaseq.compile(text)
    division = key_division(program)
    assert isinstance(division, str)
    assert reason in division
    assert f"one matches: {division}" in " ".join(program.explain().split())


def test_a_registered_function_is_called_by_one_thread() -> None:
    name = "http://example.org/functions#long"
    with registry_restored():
        spaseq.function(name)(lambda value: value > 1)
        division = key_division(
            spaseq.compile(TEXT.replace("?a }", f"?a FILTER(<{name}>(?a)) }}", 1))
        )
    assert division == "its graph patterns call registered functions"


def test_several_queries_share_one_run() -> None:
    assert key_division(spaseq.compile([TEXT, TEXT])) == "several queries run together"


@pytest.mark.parametrize(
    ("pattern", "ends"),
    [
        ("?k :pA ?a", {("pA", False)}),
        ("?x :pA ?k ; :v ?a", {("pA", True)}),
        ("?k :pA ?a OPTIONAL { ?x :o ?k }", {("pA", False)}),
        ("{ ?k :pA ?a } UNION { ?x :u ?k ; :pA ?a }", {("pA", False), ("u", True)}),
        ("{ ?k :pA ?a } UNION { ?x :u ?k ; :pA ?a } ?k :c ?d", {("c", False)}),
        ("?k :pA|:u ?a", {("pA", False), ("u", False)}),
        ("?k :pA ?a MINUS { ?k :m ?a }", {("pA", False)}),
        ("{ SELECT ?k (COUNT(*) AS ?a) { ?k :pA ?x } GROUP BY ?k }", {("pA", False)}),
    ],
)
def test_a_key_is_an_end_of_a_triple_of_every_solution(
    pattern: str, ends: set[tuple[str, bool]]
) -> None:
    """Of the ends that suffice, the fewest."""
    division = key_division(spaseq.compile(TEXT.replace("?k :pA ?a", pattern, 1)))
    assert isinstance(division, KeyDivision), division
    some = {(p.value.rsplit("/", 1)[1], is_object) for p, is_object in division.ends}
    assert some - {("pB", False)} == ends


# ------------------------------------------------------------------ sinks, errors, ends


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.nq"
    path.write_text("".join(drawn_events(random.Random(1), 400)), encoding="utf-8")
    return path


@pytest.fixture
def divisions(monkeypatch: pytest.MonkeyPatch) -> list[KeyedRuns]:
    """Notes the runs that are divided."""
    made: list[KeyedRuns] = []
    begin = KeyedRuns.__init__

    def noted(self: KeyedRuns, *given: object) -> None:
        made.append(self)
        begin(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(KeyedRuns, "__init__", noted)
    return made


def command(tmp_path: Path, text: str, events: Path, workers: int, *more: str) -> list[str]:
    query = tmp_path / "q.rq"
    query.write_text(text, encoding="utf-8")
    return ["run", str(query), "--stream", f"S={events}", "--workers", str(workers), *more]


@pytest.mark.parametrize(
    "format", ["jsonl", "csv", "tsv", "srj", "srx", "table", "nquads", "arrow"]
)
@pytest.mark.parametrize("limit", [None, 7])
def test_the_command_writes_the_same_bytes(
    format: str, limit: int | None, tmp_path: Path, events: Path, divisions: list[KeyedRuns]
) -> None:
    # No event ends two matches, so their order is certain.
    text = TEXT.replace("20 SECONDS", "20 SECONDS PARTITION BY ?k").replace("A ; B", "A , B")
    written = []
    for workers in (1, 3):
        output = tmp_path / f"out{workers}"
        more = ["--format", format, "--output", str(output)]
        more += [] if limit is None else ["--limit", str(limit)]
        assert main(command(tmp_path, text, events, workers, *more)) == 0
        written.append(output.read_bytes())
    assert written[0] == written[1]
    assert written[0].count(b"\n") > 5 or format in ("arrow", "table")
    # Names of graphs are numbered in the order of matches, so one run makes them.
    assert len(divisions) == (format not in ("nquads", "arrow"))


@pytest.mark.parametrize(
    "options", [["--stats"], ["--stats-json"], ["--why"], ["--max-groups", "9999"]]
)
def test_reports_and_limits_are_those_of_one_run(
    options: list[str], tmp_path: Path, events: Path, divisions: list[KeyedRuns]
) -> None:
    assert main(command(tmp_path, TEXT, events, 2, *options)) == 0
    assert not divisions


def test_an_empty_result_has_a_reason(
    tmp_path: Path, events: Path, capsys: pytest.CaptureFixture[str], divisions: list[KeyedRuns]
) -> None:
    text, said = TEXT.replace(":pB", ":never"), []
    for workers in (1, 2):
        assert main(command(tmp_path, text, events, workers)) == 0
        said.append(capsys.readouterr().err)
    assert "no match: B: " in said[0]
    # How often a pattern was tried depends on what the other keys wait for.
    assert [text.split(" in ")[0] for text in said] == [said[0].split(" in ")[0]] * 2
    assert len(divisions) == 1


@pytest.mark.parametrize("workers", [2, 4])
def test_an_error_of_the_input_comes_after_the_matches_before_it(
    workers: int, events: Path
) -> None:
    with events.open("a", encoding="utf-8") as file:
        file.write("this is no quad\n")
    program, results = spaseq.compile(TEXT), []
    for threads in (1, workers):
        some: list[str] = []
        with pytest.raises(InputError, match=r"events\.nq:"):
            some.extend(
                m.to_json() for m in spaseq.run(program, {"S": str(events)}, workers=threads)
            )
        results.append(by_event(some))
    assert results[0] == results[1]
    assert results[0]


def test_an_error_of_a_thread_comes_after_the_matches_before_it(
    events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, number = spaseq.compile(TEXT), 0
    every = [match.to_json() for match in spaseq.run(program, {"S": str(events)}, workers=1)]

    class Failing(PartMatches):
        def take(self, matches: object) -> None:
            nonlocal number
            number += 1
            if number == 9:
                raise MemoryError("no room")
            super().take(matches)  # type: ignore[arg-type]

    monkeypatch.setattr(keyed_runs, "PartMatches", Failing)
    some: list[str] = []
    with pytest.raises(MemoryError, match="no room"):
        some.extend(m.to_json() for m in spaseq.run(program, {"S": str(events)}, workers=2))
    assert some
    assert by_event(some)[:-1] == by_event(every)[: len(by_event(some)) - 1]


def test_the_caller_may_stop_early(events: Path) -> None:
    found = spaseq.run(spaseq.compile(TEXT), {"S": str(events)}, workers=2)
    assert next(found).query == "query"
    found.close()  # type: ignore[attr-defined]


def test_counters_are_those_of_all_threads(events: Path) -> None:
    alone = spaseq.run(TEXT, {"S": str(events)}, workers=1)
    count = len(list(alone))
    found = spaseq.run(TEXT, {"S": str(events)}, workers=2)
    next(found)
    for report in (lambda: found.stats, found.why_not):
        with pytest.raises(SpaseqError, match="counters are added at the end"):
            report()
    assert len(list(found)) == count - 1
    assert found.stats["matches"] == alone.stats["matches"] == count
    assert f"{count} matches in " in found.why_not()
    with pytest.raises(SpaseqError, match="with workers=1 there is one run"):
        _ = found.run


def test_an_endless_event_ends_with_the_run(tmp_path: Path) -> None:
    """A thread leaves the event that it matches when the run is closed."""
    pairs = " . ".join(f"?k :x ?x{n}" for n in range(9))
    text = TEXT.replace("?k :pB ?b", f"?k :pB ?b . {pairs} FILTER(?x0 = ?x1 && ?b = -1)")
    events = tmp_path / "heavy.nq"
    graph = "<http://example.org/g{}>"
    lines = [
        f'{graph.format(n)} <http://www.w3.org/ns/prov#generatedAtTime> "{n}"^^<{XSD}integer> .\n'
        f'<http://example.org/k> <http://example.org/p{"ABA"[n % 3]}> "1" {graph.format(n)} .\n'
        for n in range(40)
    ]
    lines[4] += "".join(
        f'<http://example.org/k> <http://example.org/x> "{x}" {graph.format(4)} .\n'
        for x in range(60)
    )
    events.write_text("".join(lines), encoding="utf-8")
    program = spaseq.compile(text)
    run = program.start()
    source = Source(STREAM, [str(events)], ReadOptions(workers=2), relevance=run.relevance)
    engine = divided(run, program, [source])
    assert engine is not None
    batches = source.batches()
    assert not list(engine.push_batch(next(batches)))
    engine.stop()
    batches.close()  # type: ignore[attr-defined]
