"""The reading options of the command line: recognition, contexts, framings."""

from __future__ import annotations

import gzip
import json

from test_cli import FIRST, STREAM, Shell, shell  # noqa: F401 (a fixture)

from spaseq.io.formats import STREAM_SYNTAXES


def run(shell: Shell, name: str, *more: str) -> int:  # noqa: F811
    return shell("run", "q.rq", "--stream", f"s={name}", *more)


def test_a_file_is_recognised_by_its_content(shell: Shell) -> None:  # noqa: F811
    shell.file("data", gzip.compress(STREAM.encode()))
    assert run(shell, "data") == 0
    assert shell.out == FIRST
    shell.file("data.bin", b"\0\1\2")
    assert run(shell, "data.bin") == 2
    assert "data.bin: neither the extension nor the content shows an RDF syntax" in shell.err


def test_contexts(shell: Shell) -> None:  # noqa: F811
    shell.file("c.json", json.dumps({"a": "http://example.org/a", "b": "http://example.org/b"}))
    time = "http://www.w3.org/ns/prov#generatedAtTime"
    url = "http://example.org/c"
    lines = [{"@context": url, "a": "1", time: 1}, {"@context": url, "b": "2", time: 2}]
    shell.file("s.ndjsonld", "\n".join(map(json.dumps, lines)))
    assert run(shell, "s.ndjsonld") == 2
    assert f"its @context {url} is remote" in shell.err
    for given in ("c.json", f"{url}=c.json"):
        assert run(shell, "s.ndjsonld", "--context", given, "--format", "csv") == 0
        assert (shell.out.split(), shell.err) == (["x,y", "1,2"], "")


def test_the_choices_are_those_of_the_table(shell: Shell) -> None:  # noqa: F811
    assert run(shell, "s.nq", "--input-format", "n5") == 2
    assert all(f"'{name}'" in shell.err for name in STREAM_SYNTAXES)


def test_data_sets_and_the_other_framings(shell: Shell) -> None:  # noqa: F811
    lines = STREAM.splitlines(keepends=True)
    shell.file("any.nq", "".join(lines[::2] + lines[::-2]))
    assert run(shell, "any.nq", "--on-error", "skip") == 0
    assert "--events dataset" in shell.err
    for more in ((), ("--max-memory", "1"), ("--event-metadata",)):
        assert run(shell, "any.nq", "--events", "dataset", *more) == 0
        assert (shell.out, shell.err) == (FIRST, "")
    again = STREAM.replace("org/3>", "org/1>").replace('"5"', '"6"')
    shell.file("again.nq", again)
    assert run(shell, "again.nq") == 2
    assert "--reuse-graph-names" in shell.err
    assert run(shell, "again.nq", "--reuse-graph-names") == 0
    assert shell.out == FIRST
    assert run(shell, "s.nq", "--reuse-graph-names", "--event-metadata") == 2
    assert "cannot be used together" in shell.err
    assert run(shell, "s.nq", "--events", "sets") == 2
    assert "use auto, graph, message, subject, dataset, member or triples:N" in shell.err


def test_paths_members_and_subjects(shell: Shell) -> None:  # noqa: F811
    shell.file(
        "s.ttl",
        "@prefix : <http://example.org/> . @prefix tree: <https://w3id.org/tree#> .\n"
        "@prefix sosa: <http://www.w3.org/ns/sosa/> .\n"
        "@prefix time: <http://www.w3.org/2006/time#> .\n"
        ':m1 :a "1" ; sosa:phenomenonTime [ time:inXSDDateTimeStamp 0 ] .\n'
        ':m2 :b "2" ; sosa:phenomenonTime [ time:inXSDDateTimeStamp 4 ] .\n'
        ":c tree:member :m2, :m1 ; sosa:phenomenonTime [ time:inXSDDateTimeStamp 5 ] .\n",
    )
    path = ("--time-predicate", "sosa:phenomenonTime/time:inXSDDateTimeStamp")
    for framing in ("subject", "member"):
        assert run(shell, "s.ttl", "--events", framing, *path) == 0
        assert shell.out.replace("example.org/m", "example.org/") == FIRST


def test_workers(shell: Shell) -> None:  # noqa: F811
    for number in ("1", "2", "3", "auto"):
        assert run(shell, "s.nq", "--workers", number) == 0
        assert (shell.out, shell.err) == (FIRST, "")
    for number in ("0", "-1", "many"):
        assert run(shell, "s.nq", "--workers", number) == 2
        assert "is not a number of threads: use 1, 2, ... or auto" in shell.err
