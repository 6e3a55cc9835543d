"""The compiled core means what the reference semantics means, whatever way events come.

Drawn queries of single steps, of any sort, and of sorts that are drawn too rarely. Each is run
event by event, in batches, in encoded batches, with its state put down and taken up after each
event, and on the automaton in Python. `SPASEQ_EXAMPLES` is the number of cases (default 50),
`SPASEQ_SEED` the first.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pyoxigraph as ox
import pytest
from absences import absence
from choosing import choice, skip
from core_runs import Taken, batches, encoded, in_python, knowledge
from oracle import Reference, comparable, evaluate, timestamp
from strategies import DAY, Case, iri, plain_case, random_case, smaller

import spaseq
from spaseq.errors import QueryError
from spaseq.nfa.automaton import Automaton
from spaseq.nfa.native.tables import looks_back
from spaseq.nfa.wiring import windows_back
from spaseq.parser import parse
from spaseq.plan.logical import QueryPlan
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Fact
from spaseq.results import Match

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "50"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
CHUNK = 50
XSD = "http://www.w3.org/2001/XMLSchema#"

Way = Callable[[spaseq.Program, Case, random.Random], list[Match]]


def one_by_one(program: spaseq.Program, case: Case, chance: random.Random) -> list[Match]:
    run = program.start(kb=knowledge(case))
    found = [match for event in case.merged for match in run.push_batch([event])]
    return found + run.finish()


def in_batches(program: spaseq.Program, case: Case, chance: random.Random) -> list[Match]:
    run = program.start(kb=knowledge(case))
    found: list[Match] = []
    for some in batches(case.merged, chance):
        found += run.push_batch(some)
    return found + run.finish()


def in_encoded_batches(program: spaseq.Program, case: Case, chance: random.Random) -> list[Match]:
    """With watermarks between them.

    Of one stream the core takes the events itself, but for those that close a window with
    matches that waited for it, or a tumbling window of groups.
    """
    run = program.start(kb=knowledge(case))
    taken, total = Taken(run), 0
    found: list[Match] = []
    for some in batches(case.merged, chance):
        if chance.random() < 0.3:
            found += run.advance(some[0].time)
        found += run.push_batch(encoded(run, some))
        if chance.random() < 0.2:
            total += taken.events
            run = program.resume(run.save(), kb=knowledge(case))
            taken = Taken(run)
    compiled = program.queries[0]
    grouping = compiled.plan.output.grouping
    tumbles = grouping is not None and grouping.tumbling
    if len(case.streams) == 1 and not compiled.automaton.waits and not tumbles:
        assert total + taken.events == len(case.merged)
    return found + run.finish()


def saved_after_each(program: spaseq.Program, case: Case, chance: random.Random) -> list[Match]:
    run = program.start(kb=knowledge(case))
    found: list[Match] = []
    for event in case.merged:
        found += run.push_batch([event])
        run = program.resume(run.save(), kb=knowledge(case))
    return found + run.finish()


def plainly(program: spaseq.Program, case: Case, chance: random.Random) -> list[Match]:
    run = in_python(program, knowledge(case))
    found = [match for event in case.merged for match in run.push_batch([event])]
    return found + run.finish()


WAYS: list[Way] = [
    one_by_one,
    in_batches,
    in_encoded_batches,
    saved_after_each,
    plainly,
]


def on_the_core(
    seed: int, drawn: Callable[[int], Case] = plain_case
) -> tuple[Case, spaseq.Program] | None:
    case = drawn(seed)
    try:
        program = spaseq.compile(case.query, names=["q"])
    except QueryError:
        return None
    return case, program


def objections(case: Case, program: spaseq.Program, seed: int, ways: Iterable[Way]) -> str:
    reference = Reference(parse(case.query), case.streams, case.kb)
    for way in ways:
        results = way(program, case, random.Random(seed))
        wrong = reference.objection(comparable(results))
        if wrong:
            return f"{way.__name__}: {wrong}"
    return ""


def failed(case: Case, seed: int, found: str) -> str:
    """The report of a failing case, made small."""
    (way,) = (way for way in WAYS if way.__name__ == found.partition(":")[0])

    def fails(candidate: Case) -> bool:
        try:
            program = spaseq.compile(candidate.query, names=["q"])
        except QueryError:
            return False
        return bool(objections(candidate, program, seed, [way]))

    small = smaller(case, fails)
    found = objections(small, spaseq.compile(small.query, names=["q"]), seed, [way])
    wanted = evaluate(small.query, small.streams, small.kb)
    return f"seed {seed}: {found}\n{small.entry(wanted)}"


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_the_core_equals_the_reference(first: int) -> None:
    seen = 0
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        drawn = on_the_core(seed)
        if drawn is None:
            continue
        seen += 1
        found = objections(*drawn, seed, WAYS)
        if found:
            pytest.fail(failed(drawn[0], seed, found))
    assert seen > 0.6 * (min(first + CHUNK, SEED + EXAMPLES) - first)


@pytest.mark.parametrize("first", range(SEED, SEED + 2 * EXAMPLES, CHUNK))
def test_whatever_the_core_takes_equals_the_reference(first: int) -> None:
    """Queries of any sort: units that are negated, conjunctions, skipped steps in front."""
    seen = 0
    for seed in range(first, min(first + CHUNK, SEED + 2 * EXAMPLES)):
        drawn = on_the_core(seed, random_case)
        if drawn is None:
            continue
        seen += 1
        found = objections(*drawn, seed, WAYS)
        if found:
            pytest.fail(failed(drawn[0], seed, found))
    assert seen > 0.1 * (min(first + CHUNK, SEED + 2 * EXAMPLES) - first)


def partly_in_python(seed: int) -> Case:
    """A case some of whose patterns and filters have no native form, and mean what they did.

    Objects are literals: they have no triples, so `:p+` leads no further than `:p`.
    """
    case = (random_case if seed % 2 else plain_case)(seed)
    chance = random.Random(seed)

    def searched(found: re.Match[str]) -> str:
        return f"{found[1]}+{found[2]}" if chance.random() < 0.3 else found[0]

    def computed(found: re.Match[str]) -> str:
        if chance.random() < 0.6:
            return found[0]
        return f'FILTER(({found[1]}) && REPLACE("a", "a|^$", "b") = "b")'

    def valued(found: re.Match[str]) -> str:
        if chance.random() < 0.3:
            return found[0]
        seen = f"{chance.choice(('', 'NOT '))}EXISTS {{ ?x :{chance.choice('pqr')} ?y }}"
        asked = chance.choice(('REPLACE("a", "a|^$", "b") = "b"', seen))
        return f"BIND(IF({asked}, {found[1]}, 7) AS {found[2]})"

    query = re.sub(r"(\?\w+ :[pqr])( \?v)", searched, case.query)
    query = re.sub(r"FILTER\(((?:[^{}()]|\([^{}()]*\))*)\)", computed, query)
    query = re.sub(r"BIND\(((?:[^{}()]|\([^{}()]*\))*) AS (\?z\w*)\)", valued, query)
    return replace(case, query=query)


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_what_is_left_to_python_changes_nothing_else(first: int) -> None:
    seen = 0
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        drawn = on_the_core(seed, partly_in_python)
        if drawn is None:
            continue
        tasks = drawn[1].tasks
        seen += any(task.left_to_python for task in tasks) or "REPLACE" in drawn[0].query
        found = objections(*drawn, seed, WAYS)
        if found:
            pytest.fail(failed(drawn[0], seed, found))
    assert seen > 0.3 * (min(first + CHUNK, SEED + EXAMPLES) - first)


SPELLINGS = (
    ("{}", "{}.0", "{}.00", "-{}.0"),
    ("{}.5", "{}.50", "0{}.5", "{}.25"),
    ("{}", "{}.50", "{}.5E0", "{}E0"),
    ("{}234567890.5", "9{}23372036854775807.5", "-{}", "{}.000000000000000001"),
)


def of_many_spellings(seed: int) -> Case:
    """A case whose numbers are integers, decimals and doubles, of several spellings.

    A graph holds one spelling of a value, and nothing is searched for by EXISTS: pyoxigraph, which
    answers for the reference, takes the spellings of a value for one term.
    """
    case = (random_case if seed % 2 else plain_case)(seed)
    chance = random.Random(seed)
    query = re.sub(r" FILTER (NOT )?EXISTS {[^{}]*}", "", case.query)
    spellings = chance.choice(SPELLINGS)

    def spelt(event: Event) -> Event:
        given = {
            number: spelling.format(number)
            for number in range(4)
            for spelling in [chance.choice(spellings)]
        }
        facts = [
            (s, p, _number(given[int(o.value)]) if isinstance(o, ox.Literal) else o)
            for s, p, o in event.facts
        ]
        return replace(event, facts=facts)

    streams = {name: [*map(spelt, events)] for name, events in case.streams.items()}
    return replace(case, query=query, streams=streams)


def _number(text: str) -> ox.Literal:
    kind = "double" if "E" in text else "decimal" if "." in text else "integer"
    return ox.Literal(text, datatype=ox.NamedNode(f"{XSD}{kind}"))


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_numbers_of_many_spellings(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        drawn = on_the_core(seed, of_many_spellings)
        if drawn is not None:
            found = objections(*drawn, seed, WAYS)
            if found:
                pytest.fail(failed(drawn[0], seed, found))


SORTS = {
    "contiguity in partitions": r"(?s)PARTITION BY.*SEQ\([^\n]*,",
    "strict emission": "EMIT STRICT",
    "skipping in partitions": "(?s)PARTITION BY.*AFTER MATCH",
    "choices": r"EMIT (ANY|NEXT|LAST|MAX)|LIMIT \d",
}
"""Queries that are drawn too rarely, by their features."""


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES // 3, CHUNK))
@pytest.mark.parametrize("sort", SORTS)
def test_the_core_equals_the_reference_for_one_sort_of_queries(sort: str, first: int) -> None:
    wanted = min(first + CHUNK, SEED + EXAMPLES // 3) - first
    seed = 1000 * first
    while wanted:
        seed += 1
        if not re.search(SORTS[sort], plain_case(seed).query):
            continue
        drawn = on_the_core(seed)
        if drawn is not None:
            wanted -= 1
            found = objections(*drawn, seed, WAYS)
            if found:
                pytest.fail(failed(drawn[0], seed, found))


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
@pytest.mark.parametrize("drawn", [absence, choice, skip])
def test_short_queries_of_one_sort(drawn: Callable[[int], Case], first: int) -> None:
    """What must not occur, what comes first in the order of results, what a match skips."""
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        case = on_the_core(seed, drawn)
        if case is not None:
            found = objections(*case, seed, WAYS)
            if found:
                pytest.fail(failed(case[0], seed, found))


def beside_what_looks_back(plan: QueryPlan, automaton: Automaton) -> bool:
    """Contiguity or skipping within partitions, with guards or conjunctions that look back."""
    strict = plan.emit == "STRICT" or any(place.operator == "," for place in automaton.places)
    return bool(plan.partition) and looks_back(automaton) and (strict or plan.skip_past_last)


def before_the_window(plan: QueryPlan, automaton: Automaton) -> bool:
    """Steps skipped in front that are looked for from before the window."""
    return windows_back(automaton) > 1


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES // 3, CHUNK))
@pytest.mark.parametrize("is_wanted", [beside_what_looks_back, before_the_window])
def test_the_core_equals_the_reference_where_it_looks_back(
    is_wanted: Callable[[QueryPlan, Automaton], bool], first: int
) -> None:
    wanted = min(first + CHUNK, SEED + EXAMPLES // 3) - first
    seed = 2000 * first
    while wanted:
        seed += 1
        drawn = on_the_core(seed, random_case)
        if drawn is None or not is_wanted(drawn[1].queries[0].plan, drawn[1].queries[0].automaton):
            continue
        wanted -= 1
        found = objections(*drawn, seed, WAYS)
        if found:
            pytest.fail(failed(drawn[0], seed, found))


def long_stream(case: Case, chance: random.Random) -> list[Event]:
    """Events like the case's, of more names than a window holds, with gaps."""
    dated = any(event.time.domain == DATE_TIME for event in case.merged)
    events: list[Event] = []
    now, ordinals = DAY if dated else 0, Counter[str]()
    for number in range(300):
        step = chance.choice((0, 0, 1, 1, 1, 2, 30 if chance.random() < 0.05 else 1))
        if step:
            ordinals.clear()
        now += step * 1_000_000
        stream = chance.choice(list(case.streams))
        facts: dict[Fact, None] = {}
        for _ in range(chance.randint(0, 2)):
            subject = iri(chance.choice(("a", "b", f"n{number // 3}")))
            predicate = iri(chance.choice("pqr"))
            facts[subject, predicate, ox.Literal(chance.randint(0, 3))] = None
        time = timestamp(now, DATE_TIME if dated else NUMBER)
        events.append(Event(stream, time, ordinals[stream], list(facts)))
        ordinals[stream] += 1
    return sorted(events, key=lambda event: (event.instant, event.stream))


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES // 5, CHUNK))
def test_long_streams_give_what_the_automaton_in_python_gives(first: int) -> None:
    """Batch by batch; where the language leaves a choice, as many matches.

    Not without a window, where there are more than can be listed.
    """
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES // 5)):
        drawn = on_the_core(seed, random_case if seed % 2 else plain_case)
        if drawn is None or any(word in drawn[0].query for word in ("LIMIT", "UNBOUNDED")):
            continue
        case, program = drawn
        free = any(word in case.query for word in ("ASK", "DISTINCT"))
        chance = random.Random(seed)
        run, plain = program.start(kb=knowledge(case)), in_python(program, knowledge(case))
        for some in batches(long_stream(case, chance), chance):
            ours = list(run.push_batch(encoded(run, some)))
            theirs = list(plain.push_batch(some))
            assert len(ours) == len(theirs), f"seed {seed}\n{case.query}"
            if not free:
                wrong = Counter(comparable(ours)) - Counter(comparable(theirs))
                assert not wrong, f"seed {seed}: {wrong}\n{case.query}"
            if len(theirs) > 20_000:
                break
