"""The command line as its users meet it: output, messages, exit status."""

import gzip
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from spaseq import cli, generate
from spaseq.cli import commands

QUERY = """PREFIX : <http://example.org/>
SELECT ?x ?y WITHIN 10 SECONDS FROM STREAM s :s WHERE {
  SEQ(A; B)
  DEFINE GPM A ON s { [] :a ?x }
  DEFINE GPM B ON s { [] :b ?y }
}
"""
S = "http://example.org/s"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


def one(name: str, second: int, prop: str, value: str) -> str:
    graph = f"<http://example.org/{name}>"
    return (
        f'{graph} {AT} "{second}"^^{INTEGER} .\n'
        f'<e:s> <http://example.org/{prop}> "{value}" {graph} .\n'
    )


STREAM = one("1", 0, "a", "1") + one("2", 4, "b", "2") + one("3", 5, "a", "3")
FIRST = (
    '{"query": "q", "start": 0, "end": 4, "bindings": {"x": {"type": "literal", "value": "1"}, '
    '"y": {"type": "literal", "value": "2"}}, "events": [{"gpm": "A", "stream": '
    '"http://example.org/s", "time": 0, "ordinal": 0, "graph": "http://example.org/1", '
    '"bindings": {"x": {"type": "literal", "value": "1"}}}, {"gpm": "B", "stream": '
    '"http://example.org/s", "time": 4, "ordinal": 0, "graph": "http://example.org/2", '
    '"bindings": {"y": {"type": "literal", "value": "2"}}}]}\n'
)


class Shell:
    """Runs commands in a folder of their own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]):
        self.folder = folder
        self._capsys = capsys
        self.out = self.err = ""

    def file(self, name: str, text: str | bytes) -> str:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    def __call__(self, *arguments: str) -> int:
        status = cli.main(list(arguments))
        self.out, self.err = self._capsys.readouterr()
        return status


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.chdir(tmp_path)
    made = Shell(tmp_path, capsys)
    made.file("q.rq", QUERY)
    made.file("s.nq", STREAM)
    return made


@pytest.mark.parametrize("name", [S, f"<{S}>", "s"])
def test_run(shell: Shell, name: str) -> None:
    assert shell("run", "q.rq", "--stream", f"{name}=s.nq") == 0
    assert (shell.out, shell.err) == (FIRST, "")


def test_several_files_of_a_stream(shell: Shell) -> None:
    shell.file("1.nq", one("1", 0, "a", "1"))
    shell.file("2.nq.gz", gzip.compress(one("2", 4, "b", "2").encode()))
    assert shell("run", "q.rq", "--stream", "s=1.nq", "--stream", f"{S}=2.nq.gz") == 0
    assert shell.out == FIRST


def test_formats_and_output(shell: Shell) -> None:
    run = ("run", "q.rq", "--stream", "s=s.nq", "--format")
    assert shell(*run, "csv") == 0
    assert shell.out == "x,y\r\n1,2\r\n"
    assert shell(*run, "tsv") == 0
    assert shell.out == '?x\t?y\n"1"\t"2"\n'
    assert shell(*run, "srj", "--output", "out.srj") == 0
    assert shell.out == ""
    assert json.loads((shell.folder / "out.srj").read_text())["head"] == {"vars": ["x", "y"]}
    assert shell(*run, "trig", "-o", "-") == 0
    assert "<urn:spaseq:q:1> prov:generatedAtTime" in shell.out
    assert shell(*run, "nquads", "-o", "none/out") == 2
    assert shell.err == "spaseq: error: none/out: cannot be written: No such file or directory\n"


def test_no_match_still_has_a_header(shell: Shell) -> None:
    shell.file("empty.nq", "")
    assert shell("run", "q.rq", "--stream", "s=empty.nq", "--format", "csv") == 0
    assert shell.out == "x,y\r\n"


def test_names_of_several_queries(shell: Shell) -> None:
    shell.file("r.rq", QUERY.replace("SELECT", "REGISTER QUERY found AS SELECT", 1))
    (shell.folder / "sub").mkdir()
    shell.file("sub/q.rq", QUERY.replace("?x ?y W", "?y W"))
    assert shell("run", "q.rq", "r.rq", "sub/q.rq", "--stream", "s=s.nq") == 0
    assert [json.loads(line)["query"] for line in shell.out.splitlines()] == ["q", "found", "q-2"]
    assert shell("run", "q.rq", "r.rq", "--stream", "s=s.nq", "--format", "csv") == 2
    assert "the results of one query" in shell.err


def test_limit(shell: Shell) -> None:
    again = STREAM + one("4", 6, "b", "4") + "this is never read"
    shell.file("s.nq", again)
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--limit", "1") == 0
    assert (shell.out, shell.err) == (FIRST, "")
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--limit", "0") == 2
    assert "'--limit'" in shell.err


def test_bind(shell: Shell) -> None:
    shell.file("q.rq", QUERY.replace("?y }", "?y FILTER(STR(?y) = ?wanted) }"))
    run = ("run", "q.rq", "--stream", "s=s.nq")
    assert shell(*run, "--bind", "wanted=2") == 0
    assert shell.out == ""
    for text in ("two", '"2"', "?wanted='2'", '"2"^^xsd:string'):
        name = "" if text.startswith("?") else "wanted="
        assert shell(*run, "--bind", name + text) == 0
        assert bool(shell.out) == (text != "two")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nobody=2", "no query uses the variable ?nobody"),
        ("x", "it must have the form NAME=TERM"),
        ("a b=1", "it must have the form NAME=TERM"),
        ("x=<not an iri>", "is not an RDF term"),
        ("x=http://example.org/", "write <http://example.org/> for an IRI"),
        (
            "x=b:eBay",
            "no query declares the prefix b: (known prefixes: xsd:, rdf:, rdfs:, owl:, prov:",
        ),
        ("x=b:eBay", "write <IRI> for an IRI, or '\"b:eBay\"' for a string"),
        ("x=", "write x='\"\"' for an empty string"),
    ],
)
def test_bad_binds(shell: Shell, text: str, said: str) -> None:
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--bind", text) == 2
    assert said in shell.err
    assert shell.err.count("\n") == 1
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--bind", "x=1", "--bind", "?x=2") == 2
    assert "bound twice" in shell.err


def test_bind_resolves_names_with_the_prefixes_of_the_queries(shell: Shell) -> None:
    shell.file("q.rq", QUERY.replace("?y }", "?y FILTER(STR(?wanted) = CONCAT(STR(:b), ?y)) }"))
    shell.file("r.rq", QUERY.replace("PREFIX : ", "PREFIX r: <e:r> PREFIX : "))
    shell.file("other.rq", "PREFIX r: <e:other>" + QUERY)
    run = ("run", "q.rq", "r.rq", "--stream", "s=s.nq", "--bind")
    for text in (":b2", "<http://example.org/b2>"):
        assert shell(*run, f"wanted={text}") == 0
        assert '"query": "q"' in shell.out
    for text in ("r:x", "prov:x", "12:30", '"a:b"', "a : b"):
        assert shell(*run, f"wanted={text}") == 0
        assert '"query": "q"' not in shell.out
    assert shell("run", "other.rq", *run[1:], "wanted=r:x") == 2
    assert "the queries declare r: as <e:other> and <e:r>" in shell.err


def test_output_onto_an_input_is_refused(shell: Shell, tmp_path: Path) -> None:
    kb = shell.file("kb.ttl", "<e:k> <e:p> 1 .")
    os.link(shell.folder / "s.nq", shell.folder / "hard.nq")
    os.symlink("kb.ttl", shell.folder / "soft.ttl")
    run = ("run", "q.rq", "--stream", "s=s.nq", "--kb", "e:kb=kb.ttl", "--output")
    before = {path.name: path.read_bytes() for path in shell.folder.iterdir()}
    for name in ("s.nq", "hard.nq", "kb.ttl", "soft.ttl", kb, "./q.rq"):
        assert shell(*run, name) == 2
        assert f"--output {name} is the same file as the input " in shell.err
    assert before == {path.name: path.read_bytes() for path in shell.folder.iterdir()}
    with open("s.nq") as stream:
        done = subprocess.run(
            command("run", "q.rq", "--stream", "s=-", "-o", "s.nq"),
            stdin=stream, stderr=subprocess.PIPE, text=True, env=environment(), check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "the same file as the input standard input" in done.stderr
    assert (shell.folder / "s.nq").read_text() == STREAM
    assert shell(*run, "new.jsonl") == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["q.rq"], f"no file for the stream <{S}>"),
        (["q.rq", "--stream", "t=s.nq"], f"reads the stream t; the streams read are <{S}> (s)"),
        (["q.rq", "--stream", "s.nq"], "it must have the form IRI=FILE, as in s=s.nq"),
        (["q.rq", "--stream", "s="], "it must have the form IRI=FILE"),
        (["q.rq", "--stream", "s=none.nq"], "none.nq: there is no such file"),
        (["q.rq", "--stream", "s=."], ".: is a folder"),
        (["q.rq", "--stream", "s=s.nq", "--stream", f"{S}=s.nq"], "s.nq is given twice"),
        (["q.rq", "--stream", "s=-", "--stream", "s=-"], "- is given twice"),
        (["q.rq", "--stream", "s=q.rq"], "by its content, the file was taken for TriG"),
        (["none.rq", "--stream", "s=s.nq"], "the query none.rq cannot be read: No such file"),
        (["q.rq", "s.nq"], "s.nq is a file of events, and a query is expected here: give"),
        (["q.rq", "s.csv.gz"], "give the events as --stream NAME=s.csv.gz"),
        (["latin.rq", "--stream", "s=s.nq"], "the query latin.rq is not UTF-8"),
        (["q.rq", "--stream", "s=s.nq", "--events", "triples:0"], "triples:N"),
        (["q.rq", "--stream", "s=s.nq", "--lateness", "soon"], "is not a duration"),
        (["q.rq", "--stream", "s=s.nq", "--time-predicate", "a b"], "is not an IRI"),
        (
            ["q.rq", "--stream", "s=s.nq", "--time-predicate", "e:t", "--arrival-time"],
            "cannot be used together",
        ),
        (["q.rq", "--stream", "s=s.nq", "--kb", "e:kb=http://a:b@c.org/"], "contains credentials"),
        (["q.rq", "--stream", "s=s.nq", "--context", "none.json"], "none.json: there is no such"),
        (["q.rq", "--stream", "s=s.nq", "--context", "http://a.org/"], "the form [URL=]FILE"),
        (["q.rq", "--stream", "s=s.nq", *(["--context", "q.rq"] * 2)], "is given twice"),
        (["q.rq", "--stream", "s=s.nq", "--kb", "e:kb=none.ttl"], "none.ttl: there is no such"),
        (["q.rq", "--stream", "s=s.nq", "--entail", "rdfs"], "--entail rdfs reads the schema from"),
        (["q.rq", "--stream", "s=s.nq", "--entail", "owl"], "'owl' is not one of 'rdfs', 'owl-ql'"),
        (["q.rq", "--stream", "s=s.nq", "--format", "xml"], "'xml' is not one of"),
        (["--stream", "s=s.nq"], "give a query"),
        (["q.rq", "--nonsense"], "No such option"),
    ],
)
def test_unusable_arguments_are_one_line_and_status_2(
    shell: Shell, arguments: list[str], said: str
) -> None:
    shell.file("latin.rq", b"SELECT \xe9")
    assert shell("run", *arguments) == 2
    assert said in shell.err
    assert shell.err.startswith("spaseq: error: ")
    assert shell.err.count("\n") == 1
    assert shell.out == ""


def test_iris_and_files_may_hold_equals_signs(shell: Shell) -> None:
    iri = "http://example.org/?id=s"
    shell.file("q.rq", QUERY.replace(":s W", f"<{iri}> W"))
    shell.file("a=b.nq", STREAM)
    for name in ("s", iri):
        assert shell("run", "q.rq", "--stream", f"{name}=a=b.nq") == 0
        assert shell.out.count("\n") == 1


def test_a_broken_input_gives_what_was_before_it_and_status_2(shell: Shell) -> None:
    shell.file("s.nq", STREAM + "what?\n" + one("4", 6, "b", "4"))
    assert shell("run", "q.rq", "--stream", "s=s.nq") == 2
    assert shell.out == FIRST
    assert shell.err.startswith("spaseq: error: s.nq:7: not N-Quads, column 1: ")
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--on-error", "skip") == 0
    assert [json.loads(line)["end"] for line in shell.out.splitlines()] == [4, 6]
    assert shell.err.startswith("spaseq: skipped: s.nq:7: not N-Quads")
    assert shell.err.endswith("spaseq: 1 error skipped (--on-error skip)\n")


def test_no_window_closes_at_a_broken_end(shell: Shell) -> None:
    shell.file("q.rq", QUERY.replace("A; B", "A; !B").replace("?x ?y", "?x"))
    shell.file("s.nq", one("1", 0, "a", "1") + "what?\n")
    assert shell("run", "q.rq", "--stream", "s=s.nq") == 2
    assert shell.out == ""


def test_lateness(shell: Shell) -> None:
    shell.file("s.nq", one("2", 4, "b", "2") + one("1", 0, "a", "1") + one("0", 3, "b", "0"))
    assert shell("run", "q.rq", "--stream", "s=s.nq") == 2
    assert "s.nq:3: time runs backwards" in shell.err
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--lateness", "5s") == 0
    assert json.loads(shell.out)["bindings"]["y"]["value"] == "0"
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--lateness", "1000ms") == 0
    assert shell.out == ""
    assert "late event dropped: s.nq:3" in shell.err
    assert "1 event arrived too late and was dropped (--lateness)\n" in shell.err


def test_reading_options(shell: Shell) -> None:
    shell.file("s.data", "".join(f"<e:s> <http://example.org/{p}> 1 .\n" for p in "ab"))
    run = ("run", "q.rq", "--stream", "s=s.data", "--input-format", "ttl", "--events", "triples:1")
    assert shell(*run) == 0
    assert json.loads(shell.out)["end"] == 1
    shell.file("ms.nq", STREAM.replace(AT, "<e:t>"))
    timed = ("--time-predicate", "<e:t>", "--time-unit", "ms")
    assert shell("run", "q.rq", "--stream", "s=ms.nq", *timed) == 0
    assert json.loads(shell.out)["end"] == 0.004
    named = ("--time-predicate", "prov:generatedAtTime")
    assert shell("run", "q.rq", "--stream", "s=s.nq", *named) == 0
    assert shell.out == FIRST
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--arrival-time") == 0
    assert json.loads(shell.out)["end"].endswith("Z")


def test_entailment(shell: Shell) -> None:
    """The schema is read without a GRAPH that names it, and no warning says otherwise."""
    shell.file("q.rq", QUERY)
    more = "<http://example.org/v> rdfs:subPropertyOf <http://example.org/a> ."
    shell.file("kb.ttl", f"@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . {more}")
    kb = ("--kb", "http://example.org/kb=kb.ttl")
    assert shell("run", "q.rq", "--stream", "s=s.nq", *kb, "--entail", "rdfs") == 0
    assert shell.err == ""
    assert shell("explain", "q.rq", *kb, "--entail", "rdfs") == 0
    assert "(also by 1 subproperty)" in shell.out
    assert shell("explain", "q.rq", *kb) == 2
    assert "--kb needs --entail" in shell.err


def test_kb(shell: Shell) -> None:
    in_kb = "?x GRAPH <http://example.org/kb> { ?k :value ?x } }"
    shell.file("q.rq", QUERY.replace("?x }", in_kb))
    shell.file("kb.ttl", '<e:k> <http://example.org/value> "1" .')
    run = ("run", "q.rq", "--stream", "s=s.nq", "--kb")
    assert shell(*run, "http://example.org/kb=kb.ttl") == 0
    assert shell.out.count("\n") == 1
    shell.file("kb.ttl", '<e:k> <http://example.org/value> "1')
    assert shell(*run, "http://example.org/kb=kb.ttl") == 2
    assert shell.err.startswith("spaseq: error: ")
    given = "http://example.org/kb=kb.ttl"
    assert shell(*run, given, "--kb", given) == 2
    assert "<http://example.org/kb> is given twice" in shell.err


GRAPHS = QUERY.replace("?x }", "?x GRAPH :companies { ?k :is ?x } }")
E = "http://example.org/"


@pytest.mark.parametrize(
    ("graph", "dataset", "given", "said"),
    [
        (":companies", "", [], ["<E/companies> is read, but not given; graphs given: none\n"]),
        (":companies", "", ["companies"], []),
        (
            ":companies", "", ["company"],
            ["q.rq:4:38: warning: the KB graph <E/companies> is read, but not given; graphs "
             "given: <E/company>; did you mean <E/company>?\n",
             "hint: add --kb 'E/companies=FILE'",
             "no query reads the KB graph <E/company> given with --kb; graphs read: "
             "<E/companies>; did you mean <E/companies>?\n"],
        ),
        (":companies", "FROM :other", ["other"], ["FROM does not list it", "FROM NAMED <E/comp"]),
        ("?g", "", ["companies", "other"], []),
        ("?g", "FROM :a", ["a", "b"], ["no query reads the KB graph <E/b>"]),
        ("?g", "", [], ["GRAPH ?g reads the graphs of the KB, but none is given", "--kb 'IRI=FI"]),
    ],
)  # fmt: skip
def test_graphs_read_and_given_that_do_not_fit_are_warned_of(
    shell: Shell, graph: str, dataset: str, given: list[str], said: list[str]
) -> None:
    text = GRAPHS.replace("GRAPH :companies", f"GRAPH {graph}").replace(":s W", f":s {dataset} W")
    shell.file("q.rq", text)
    shell.file("kb.ttl", "<e:k> <e:p> 1 .")
    kbs = [part for name in given for part in ("--kb", f"{E}{name}=kb.ttl")]
    assert shell("run", "q.rq", "--stream", "s=s.nq", *kbs) == 0
    for part in said:
        assert part.replace("E/", E) in shell.err
    if not said:
        # The streams have no row that fits, and the command says which pattern has none.
        assert shell.err.startswith("spaseq: no match: ")
        assert shell.err.count("\n") == 1


def test_a_malformed_kb_is_told_like_a_malformed_stream(shell: Shell) -> None:
    shell.file("q.rq", GRAPHS)
    shell.file("kb.ttl", "<e:a> <e:p> 1 .\n<e:a> oops .\n")
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--kb", f"{E}companies=kb.ttl") == 2
    assert shell.err == (
        "spaseq: error: kb.ttl:2: not Turtle, column 7: oops is not a valid predicate\n"
    )


def test_query_errors_have_a_picture(shell: Shell) -> None:
    shell.file("bad.rq", QUERY.replace("SEQ(A; B)", "SEQ(A; C)"))
    for command in (["check"], ["explain"], ["run", "--stream", "s=s.nq"]):
        assert shell(*command, "bad.rq") == 2
        assert shell.out == ""
        assert "bad.rq:3:10: error: " in shell.err
        assert "    3 |   SEQ(A; C)\n                 ^" in shell.err


def test_an_unknown_function_has_file_line_excerpt_and_hint(shell: Shell) -> None:
    function = "<http://example.org/sfWithin>"
    query = QUERY.replace("[] :a ?x", f"[] :a ?x FILTER({function}(?x, ?x))")
    shell.file("geo.rq", query)
    line = next(text for text in query.splitlines() if function in text)
    number, column = query.splitlines().index(line) + 1, line.index(function)
    for command in (["check"], ["explain"], ["run", "--stream", "s=s.nq"]):
        assert shell(*command, "geo.rq") == 2
        assert f"geo.rq:{number}:{column + 1}: error: the function `{function}` is not known" in (
            shell.err
        )
        assert f"{line}\n{' ' * (8 + column)}^" in shell.err
        assert "hint: did you mean `geof:sfWithin`?" in shell.err


def test_check_and_warnings(shell: Shell) -> None:
    assert shell("check", "q.rq") == 0
    assert (shell.out, shell.err) == ("ok\n", "")
    shell.file("w.rq", QUERY.replace("WITHIN 10 SECONDS", "WITHIN UNBOUNDED"))
    assert shell("check", "q.rq", "w.rq") == 0
    assert shell.out == "ok\n"
    assert "w.rq:2:14: warning: " in shell.err


def test_explain(shell: Shell) -> None:
    assert shell("explain", "q.rq") == 0
    assert "A" in shell.out
    assert shell("explain", "q.rq", "--dot") == 0
    assert shell.out.startswith("digraph")
    assert shell("explain", "q.rq", "--svg") == 0
    assert "<svg" in shell.out
    assert shell("explain", "q.rq", "--svg", "--dot") == 2


def test_stats(shell: Shell) -> None:
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--stats") == 0
    assert shell.out == FIRST
    assert "matches written" in shell.err
    assert f"<{S}>" in shell.err


def test_generate(shell: Shell) -> None:
    assert shell("generate", "stock", "--events", "30", "--out", "demo") == 0
    assert (shell.folder / "demo" / "query.rq").exists()
    paths = shell.out.split()
    assert all(Path(path).exists() for path in paths)
    assert shell("check", "demo/query.rq") == 0
    assert shell("generate", "stock", "cards", "--events", "5", "--out", "both") == 0
    assert (shell.folder / "both" / "cards" / "query.rq").exists()
    assert shell("generate", "nothing") == 2
    for name in ("generate", "completion"):
        assert shell(name) == 2
        assert "Missing argument" in shell.err
        assert f"(see spaseq {name} --help)" in shell.err
        assert shell.err.count("\n") == 1


def test_data_sets_are_those_of_the_generators() -> None:
    assert set(commands.DATASETS) == set(generate.DATASETS)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion(shell: Shell, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell("completion", name) == 0
    assert "_SPASEQ_COMPLETE" in shell.out
    assert shell("completion", "tcsh") == 2


def test_help_and_version(shell: Shell) -> None:
    assert shell() == 0
    assert "Examples:" in shell.out
    for command in ("run", "check", "explain", "generate", "completion"):
        assert shell(command, "--help") == 0
        assert "Examples:\n  " in shell.out
    assert shell("--version") == 0
    assert shell.out.startswith("spaseq 0.")


def test_interrupt(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spaseq.pipeline.file_sources", interrupted)
    assert shell("run", "q.rq", "--stream", "s=s.nq") == 130
    assert shell.err == "\nspaseq: interrupted\n"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "spaseq", *arguments]


def environment() -> dict[str, str]:
    root = str(Path(cli.__file__).parents[2])
    return {**os.environ, "PYTHONPATH": root, "PYTHONWARNINGS": "error"}


def test_a_live_match_is_there_before_the_stream_ends(shell: Shell) -> None:
    with subprocess.Popen(
        command("run", "q.rq", "--stream", "s=-"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(STREAM)
        process.stdin.flush()
        assert process.stdout.readline() == FIRST
        process.send_signal(signal.SIGTERM)  # SIGINT is ignored in background jobs
        assert process.wait(10) == 143


def test_a_closed_pipe_ends_quietly(shell: Shell) -> None:
    text = "".join(one(f"{n}", n, "ab"[n % 2], f"{n}") for n in range(4000))
    shell.file("s.nq", text)
    with subprocess.Popen(
        command("run", "q.rq", "--stream", "s=s.nq"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 0


def in_shell(line: str) -> subprocess.CompletedProcess[str]:
    """A line of the shell in which `spaseq` is this command line."""
    words = line.replace("spaseq ", f"'{sys.executable}' -m spaseq ", 1)
    return subprocess.run(
        ["sh", "-c", words], capture_output=True, text=True, env=environment(), check=False
    )


RUN = "spaseq run q.rq --stream s="


@pytest.mark.parametrize(
    ("line", "status", "error"),
    [
        (f"{RUN}s.nq >&-", 2, "standard output is closed; name a file with --output"),
        (f"{RUN}s.nq -o out >&-", 0, ""),
        (f"{RUN}s.nq -o out <&-", 0, ""),
        (f"{RUN}- <&-", 2, "standard input is closed, but --stream reads it (-)"),
        ("spaseq check q.rq >&-", 2, "standard output is closed"),
        ("spaseq explain q.rq >&-", 2, "standard output is closed"),
        (f"{RUN}s.nq --stats --progress -o out 2>&-", 0, ""),
    ],
)
def test_closed_standard_files(shell: Shell, line: str, status: int, error: str) -> None:
    done = in_shell(line)
    assert done.returncode == status
    assert done.stdout == ""
    assert done.stderr.startswith(f"spaseq: error: {error}" if error else "")
    assert done.stderr.count("\n") == (1 if error else 0)


def test_errors_do_not_go_to_standard_output_where_standard_error_is_closed(shell: Shell) -> None:
    done = in_shell("spaseq check none.rq 2>&-")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"{RUN}s.nq -o /dev/full", "/dev/full"),
        (f"{RUN}s.nq --format csv -o /dev/full", "/dev/full"),
        (f"{RUN}s.nq > /dev/full", "standard output"),
        (f"{RUN}- < s.nq > /dev/full", "standard output"),
        ("spaseq check q.rq > /dev/full", "standard output"),
        ("spaseq --help > /dev/full", "standard output"),
    ],
)
def test_a_full_disk_is_told_with_the_name_of_the_file(shell: Shell, line: str, name: str) -> None:
    done = in_shell(line)
    said = f"spaseq: error: {name}: cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_the_progress_bar_is_for_terminals(shell: Shell) -> None:
    assert shell("run", "q.rq", "--stream", "s=s.nq", "--progress") == 0
    assert (shell.out, shell.err) == (FIRST, "")
    leader, terminal = os.openpty()
    done = subprocess.run(
        command("run", "q.rq", "--stream", "s=s.nq", "--progress"),
        stdout=subprocess.PIPE, stderr=terminal, text=True, env=environment(), check=True,
    )  # fmt: skip
    os.close(terminal)
    shown = os.read(leader, 100_000).decode()
    os.close(leader)
    assert done.stdout == FIRST
    assert " events · 1 match · at " in shown


def test_rows_and_progress_share_one_terminal(shell: Shell) -> None:
    """The line of progress is erased before rows, and drawn only where a row has ended."""
    shell.file("s.nq", "".join(one(str(n), n, "ab"[n % 2], str(n)) for n in range(4_000)))
    leader, terminal = os.openpty()
    process = subprocess.Popen(
        command("run", "q.rq", "--stream", "s=s.nq", "--progress", "--format", "tsv"),
        stdout=terminal, stderr=terminal, env=environment(),
    )  # fmt: skip
    os.close(terminal)
    shown = bytearray()
    with suppress(OSError):  # the terminal is closed at the end
        while part := os.read(leader, 65_536):
            shown += part
    os.close(leader)
    assert process.wait() == 0
    lines = screen(shown.decode())
    alone = in_shell(f"{RUN}s.nq --format tsv").stdout.splitlines()
    assert lines == alone
    assert b"events" in shown


def screen(text: str) -> list[str]:
    """The lines that a terminal shows in the end: `\\r\\x1b[K` erases the line."""
    lines = text.replace("\r\n", "\n").split("\n")
    return [line.rpartition("\r\x1b[K")[2] for line in lines][:-1]


def test_bounds_stop_a_run_or_shed(shell: Shell) -> None:
    bounded = ["run", "q.rq", "--stream", "s=s.nq", "--max-groups", "1"]
    query = QUERY.replace("{ [] :b ?y }", "{ [] :b ?y FILTER(?y != ?x) }")
    shell.file("q.rq", query)
    shell.file("s.nq", one("1", 0, "a", "1") + one("2", 1, "a", "2") + one("3", 4, "b", "3"))
    assert shell(*bounded) == 1
    assert shell.err.startswith("q:3:10: error: more than 1 group of partial matches waits at 1 ")
    assert "distinguished by ?x (2 values)" in shell.err
    assert shell(*bounded, "--on-limit", "shed", "--stats") == 0
    assert shell.out.count("\n") == 1
    assert "1 group was shed (--on-limit shed): matches may be missing" in shell.err
    assert "shed_groups" in shell.err


def test_memory_for_the_rows_of_an_event_is_bounded(shell: Shell) -> None:
    shell.file("q.rq", QUERY.replace("[] :a ?x", "?s :p ?x . ?t :p ?u . ?v :p ?w"))
    many = "".join(
        f'<e:s> <http://example.org/p> "{n}" <http://example.org/1> .\n' for n in range(50)
    )
    shell.file("s.nq", one("1", 0, "p", "1") + many)
    bounded = ["run", "q.rq", "--stream", "s=s.nq", "--max-memory"]
    assert shell(*bounded, "64K") == 1
    assert "takes more than 65,536 bytes for its rows in GPM A (--max-memory)" in shell.err
    assert shell(*bounded, "64 MiB") == 0
    for wrong in ("0", "64X", "much", "-1"):
        assert shell(*bounded, wrong) == 2
        assert "is not a number of bytes, such as 65536, 512M or 2G" in shell.err


def test_a_run_imports_no_http_client_bar_or_report_that_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nq").write_text(STREAM)
    code = (
        "import sys\nfrom spaseq.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'httpx', 'rich', 'pygments', 'ssl', 'asyncio', 'pyarrow', 'rdflib', 'msgspec',\n"
        "    'tomllib', 'hashlib', 'difflib', 'pickle', 're2', 'tempfile', 'csv', 'gzip',\n"
        "    'spaseq.explain', 'spaseq.live.session', 'spaseq.kb.files', 'spaseq.io.grouping',\n"
        "    'spaseq.io.rows.source', 'spaseq.engine.multi_run'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, "run", "q.rq", "--stream", f"{S}=s.nq"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (shown.stdout, shown.stderr) == (FIRST, "[]\n")
