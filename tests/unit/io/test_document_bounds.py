"""Long tokens, forgotten quotes and deep nesting: linear work, and errors that name a line."""

from __future__ import annotations

import io
import lzma
import time
import tracemalloc
from importlib import import_module
from pathlib import Path

import pyoxigraph as ox
import pytest

from spaseq import cli
from spaseq.engine.python_graphs import facts_of
from spaseq.errors import EventError, InputError, KbError
from spaseq.io import documents as documents_module
from spaseq.io import lines as lines_module
from spaseq.io.lines import Lines
from spaseq.io.read_options import ReadOptions
from spaseq.io.source import Source
from spaseq.kb import open_kb
from spaseq.kb.files import read_quads
from spaseq.rdf import compression, line_feed
from spaseq.rdf.line_feed import LineFeed
from spaseq.rdf.native._framing import EventReader
from spaseq.rdf.native._terms import Dictionary, Relevance
from spaseq.rdf.native._turtle import DocumentReader
from spaseq.rdf.syntax import LimitError, nesting, parser_failure
from spaseq.rdf.turtle_strings import LongStrings, long_string_end, tokens_of, unescaped

HEAD = "@prefix : <http://example.org/> .\n@prefix prov: <http://www.w3.org/ns/prov#> .\n"
LONG = 17 << 20
"""More than the parser holds of one token."""


def event(number: int, value: str) -> str:
    return f":g{number} prov:generatedAtTime {number} .\n:g{number} {{ :e :v {value} }}\n"


def values(path: Path, on_error: str = "stop") -> tuple[list[str], list[str], str]:
    """The values of the events of a file, what was logged, and the error that ended it."""
    log: list[str] = []
    options = ReadOptions(on_error=on_error)  # type: ignore[arg-type]
    found: list[str] = []
    try:
        for one in Source("urn:s", [str(path)], options, log=log.append):
            found += [term.value for _, _, term in one.facts]
    except InputError as error:
        return found, log, str(error)
    return found, log, ""


class CountedFeed(LineFeed):
    calls = 0
    handed = 0

    def read(self, size: int = -1) -> bytes:
        part = super().read(size)
        self.calls += 1
        self.handed += len(part)
        return part


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_a_string_of_many_lines_is_handed_out_as_one(quotes: str) -> None:
    """Else the parser would read it anew with each of its lines."""
    body = "a line\n" * 20_000
    data = f'<urn:a> <urn:b> {quotes}{body}{quotes} .\n<urn:a> <urn:b> "c" .\n'.encode()
    feed = CountedFeed(Lines("-", io.BytesIO(data)))
    parsed = list(ox.parse(feed, format=ox.RdfFormat.TURTLE))  # type: ignore[arg-type]
    assert [len(quad.object.value) for quad in parsed] == [len(body), 1]
    assert feed.handed == len(data)
    assert feed.calls < 300


@pytest.mark.parametrize("quotes", ['"""', "'''", '"'])
def test_strings_longer_than_the_parser_holds_are_read(tmp_path: Path, quotes: str) -> None:
    breaks = "" if quotes == '"' else "\n"
    body = ("é\\n\\u00e9\\\\" + breaks) * (LONG // 10)
    path = tmp_path / "s.trig"
    path.write_text(
        HEAD + event(1, '"a"') + event(2, quotes + body + quotes + "@en") + event(3, "3")
    )
    found, _, error = values(path)
    expected = ("é\né\\" + breaks) * (LONG // 10)
    assert error == ""
    assert (found[0], len(found[1]), found[2]) == ("a", len(expected), "3")
    assert found[1] == expected


def test_a_string_without_end_is_an_error_at_its_quotes(tmp_path: Path) -> None:
    for size in (1000, LONG):
        path = tmp_path / "s.trig"
        body = "a line of the string\n" * (size // 20)
        path.write_text(HEAD + event(1, '"a"') + event(2, '"b"') + event(3, '"""' + body))
        found, _, error = values(path)
        assert found == ["a", "b"]
        assert error.startswith(f"{path}:8: not TriG, column 13: unexpected end of file")


@pytest.mark.parametrize("value", ["<http://x/{}>", ":{}", "_:{}"])
def test_other_tokens_that_are_too_long_are_refused_by_name(tmp_path: Path, value: str) -> None:
    path = tmp_path / "s.trig"
    long = value.format("x" * LONG)
    path.write_text(HEAD + event(1, '"a"') + event(2, long) + event(3, '"c"'))
    found, _, error = values(path)
    assert found == ["a"]
    assert error == f"{path}:6: a token is unterminated or longer than 16 MiB, the parser's limit"
    found, log, error = values(path, "skip")
    assert (found, len(log), error) == (["a", "c"], 1, "")


def test_long_comments_are_no_tokens(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    path.write_text(HEAD + event(1, '"a"') + "# " + '"' * LONG + "\n" + event(2, '"b"'))
    assert values(path) == (["a", "b"], [], "")


@pytest.mark.parametrize("name", ["s.nq", "s.nt"])
def test_a_line_that_is_too_long_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    time = '<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> "1"^^<urn:x> .\n'
    path.write_text(time + "x" * LONG + "\n")
    _, _, error = values(path)
    assert error == f"{path}:2: a token is unterminated or longer than 16 MiB, the parser's limit"


@pytest.mark.parametrize("breaks", [" ", "\n"])
def test_triple_terms_inside_of_each_other_are_bounded(tmp_path: Path, breaks: str) -> None:
    """The parser calls itself for each of them: a hundred thousand end the process."""
    path = tmp_path / "s.trig"
    deep = f"<<( :a :b{breaks}" * 100_000 + "1" + " )>>" * 100_000
    path.write_text(HEAD + event(1, '"a"') + event(2, deep))
    found, _, error = values(path)
    assert found == ["a"]
    assert error.endswith("triple terms are nested more than 100 deep")


@pytest.mark.parametrize("opening", ["(", "[ :q ", "[ :q (\n"])
@pytest.mark.parametrize("own", [True, False])
def test_brackets_inside_of_each_other_are_bounded(tmp_path: Path, opening: str, own: bool) -> None:
    """A parser stores what encloses a bracket: ten million of them take gigabytes."""
    path = tmp_path / "s.trig"
    closing = "".join({"(": " )", "[": " ]"}.get(c, "") for c in reversed(opening))
    most = 1000 // len(closing.split())
    # The own reader leaves statements with escapes in names to the parser.
    unusual = "" if own else ":a\\- :p 1 ."

    def read(levels: int) -> tuple[list[str], list[str], str]:
        deep = opening * levels + "1" + closing * levels
        path.write_text(HEAD + event(1, '"a"') + event(2, f'"b" . {unusual} :s :p {deep}'))
        return values(path)

    found, _, error = read(most - 1)
    assert found[:2] == ["a", "b"]
    assert (len(found) >= most, error) == (True, "")
    found, _, error = read(most + 1)
    assert found == ["a"]
    assert error.endswith("s.trig:6: its brackets are nested more than 1,000 deep")


def test_many_errors_of_one_line_are_skipped_or_refused(tmp_path: Path) -> None:
    """For each error the parser counts the characters before it on its line."""
    path = tmp_path / "s.trig"
    few = ":a . " * 300
    begin, end = HEAD + event(1, '"a"') + event(2, '"b"'), "\n" + event(3, '"c"')
    path.write_text(begin + few + end)
    found, log, error = values(path, "skip")
    assert (found, error) == (["a", "b", "c"], "")
    assert len(log) == 150  # the parser recovers after the statement behind an error
    path.write_text(begin + few * 400 + end)
    found, log, error = values(path, "skip")
    assert found == ["a"]
    assert error.endswith(
        "s.trig:7: the line has too many errors for its length to be skipped one by one"
    )


def test_errors_without_a_statement_between_them_cost_the_same(tmp_path: Path) -> None:
    """The lines since the last statement are stored, and each error looks for its own."""
    count = 100_000
    feed = LineFeed(_Numbered(b":a :b << .\n" * count), remembers=True)
    began = time.process_time()
    for number in range(1, count + 1):
        feed.read()
        assert feed.torn(number) is None
    assert time.process_time() - began < 20
    feed = LineFeed(_Numbered(b":a :b :c .\n" * count + b":a <b\n"), remembers=True)
    while feed.read():
        feed.statement_ended()
    front, torn, behind = feed.torn(count + 1) or (b"", b"", [])
    assert (front, torn, behind) == (b"", b":a <b\n", [])


class _Numbered:
    def __init__(self, text: bytes):
        self._file = io.BytesIO(text)
        self.number = 0

    def readline(self) -> bytes:
        line = self._file.readline()
        self.number += bool(line)
        return line


@pytest.mark.parametrize("line", [b"\n", b"\r", b"# a comment\n", b"@prefix : <u:> .\n"])
def test_a_long_beginning_is_not_stored(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "s.trig"
    begin = line * 400_000
    path.write_bytes(begin + HEAD.encode() + event(1, '"a"').encode())
    tracemalloc.start()
    try:
        assert values(path) == (["a"], [], "")
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


def test_malformed_statements_leave_no_brackets_open(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    path.write_text(HEAD + event(1, '"a"') + ":a :b ( [ :q , .\n" * 3000 + event(2, '"b"'))
    found, log, error = values(path, "skip")
    assert (found, error) == (["a", "b"], "")
    assert not any("nested" in line for line in log)


def test_text_with_many_angle_brackets_is_no_nesting(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    path.write_text(HEAD + "".join(event(n, '"<<<<<<< HEAD"') for n in range(1, 400)))
    found, _, error = values(path)
    assert (len(found), error) == (399, "")
    assert nesting(b"<<( <<( )>> <<(") == 2
    with pytest.raises(LimitError):
        nesting(b"<<(" * 101)


def test_a_long_token_of_the_knowledge_base_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "kb.ttl"
    path.write_text(f'<urn:a> <urn:b> "{"x" * LONG}" .\n')
    with pytest.raises(KbError, match="longer than 16 MiB"):
        list(read_quads(path))


def test_nesting_in_the_knowledge_base_and_in_pushes_is_bounded(tmp_path: Path) -> None:
    deep = "<<( <urn:a> <urn:b> " * 100_000 + "<urn:c>" + " )>>" * 100_000
    path = tmp_path / "kb.nt"
    path.write_text(f"<urn:a> <urn:b> {deep} .\n")
    with pytest.raises(KbError, match="nested more than 100 deep"):
        list(read_quads(path))
    with pytest.raises(EventError, match="nested more than 100 deep"):
        facts_of(path.read_bytes(), "e0")


def test_a_string_of_too_many_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_feed, "MAX_STRING_BYTES", 1 << 12)
    feed = LineFeed(Lines("-", io.BytesIO(b'<urn:a> <urn:b> """' + b"x\n" * 5000 + b'""" .\n')))
    with pytest.raises(LimitError, match="a string of more than"):
        feed.read()


def test_what_a_parser_raises_is_told_apart_from_other_errors() -> None:
    class PanicException(BaseException):
        """As pyoxigraph names what it raises where it fails."""

    for error in (MemoryError(), RecursionError(), OverflowError(), ValueError(), PanicException()):
        assert parser_failure(error)
    for other in (KeyboardInterrupt(), KeyError(), SystemExit()):
        assert parser_failure(other) is None


def test_where_strings_end() -> None:
    assert long_string_end(b'a\\"""b"""', 0, b'"""') == 9
    assert long_string_end(b'a\\\\"""', 0, b'"""') == 6
    assert long_string_end(b'a""', 0, b'"""') == -1
    strings = LongStrings()
    for line, inside in (
        (b"<http://x/'''> :p \"\"\"a", b'"""'),
        (b'"" \\""" b', b'"""'),
        (b"\"\"\" . # '''", None),
        (b"\"'''\" :q '''", b"'''"),
        (b"'''", None),
    ):
        strings.read(line)
        assert strings.inside == inside, line
    assert list(tokens_of(b"\"a\" '''b''' # c")) == [(0, 3, 1), (4, 11, 3), (12, 15, 0)]
    assert unescaped(b"a\\t\\u00e9\\U0001F600") == "a\té😀"
    assert unescaped(b"\\x") is unescaped(b"\\uD800") is unescaped(b"\xff") is None


# ------------------------------------------------------------------ going on behind what is torn

TORN = {
    "an open string": b'"abc',
    "an open single-quoted string": b"'abc",
    "an open long string": b'"""abc',
    "an open IRI": b"<urn:x",
    "no UTF-8": b'"a\xffb"',
}


@pytest.mark.parametrize("value", TORN.values(), ids=TORN)
@pytest.mark.parametrize("lines", [1, 3])
def test_reading_goes_on_behind_a_torn_line(tmp_path: Path, value: bytes, lines: int) -> None:
    """The rest of a graph's block is passed over: its statements would be of no graph."""

    def block(number: int, term: bytes) -> bytes:
        gap = b" " if lines == 1 else b"\n"
        stamp = f":g{number} prov:generatedAtTime {number} .\n:g{number} {{".encode()
        rest = b"" if lines == 1 else b" .\n:s prov:generatedAtTime 99 ."
        return stamp + gap + b":e :v " + term + rest + gap + b"}\n"

    path = tmp_path / "s.trig"
    good = [f'"{n}"'.encode() for n in range(3, 7)]
    texts = [block(1, b'"1"'), block(2, value)]
    path.write_bytes(HEAD.encode() + b"".join(texts + [block(n, t) for n, t in enumerate(good, 3)]))
    found, log, error = values(path, "skip")
    assert [value for value in found if value != "99"] == ["1", "3", "4", "5", "6"]
    assert (len(log), error) == (1, "")
    assert log[0].startswith(f"skipped: {path}:{6 if lines == 1 else 10}: not TriG")


def test_each_torn_line_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    path.write_text(HEAD + "".join(event(n, '"abc') for n in range(1, 2001)) + event(3000, '"d"'))
    found, log, error = values(path, "skip")
    assert (found, len(log), error) == (["d"], 2000, "")


def test_a_long_line_does_not_take_the_event_in_front_of_it(tmp_path: Path) -> None:
    quads = (
        '<urn:g{0}> <http://www.w3.org/ns/prov#generatedAtTime> "{0}"'
        "^^<http://www.w3.org/2001/XMLSchema#integer> .\n<urn:e> <urn:v> <urn:{0}> <urn:g{0}> .\n"
    )
    path = tmp_path / "s.nq"
    path.write_text(quads.format(1) + "x" * LONG + "\n" + quads.format(3))
    found, _, error = values(path)
    assert found == ["urn:1"]
    assert error.startswith(f"{path}:3: ")
    assert values(path, "skip")[0] == ["urn:1", "urn:3"]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_lines_end_as_editors_have_it(tmp_path: Path, ends: str) -> None:
    path = tmp_path / "s.trig"
    text = HEAD + event(1, '"a"') + "# a comment\n" + event(2, ":broken :broken")
    path.write_bytes(text.replace("\n", ends).encode())
    found, _, error = values(path)
    assert found[:1] == ["a"]
    assert error.startswith(f"{path}:7: ")
    first = next(iter(Source("urn:s", [str(path)])))
    assert first.origin == f"{path}:3"


def test_long_strings_of_the_knowledge_base_are_read(tmp_path: Path) -> None:
    for name, text, size in (
        ("kb.ttl", f'<urn:a> <urn:b> """{"line" * (LONG // 4)}\n""" .\n', LONG + 1),
        ("kb.nt", f'<urn:a> <urn:b> "{"x" * LONG}" .\n', LONG),
    ):
        path = tmp_path / name
        path.write_text(text)
        graph = open_kb({"urn:kb": path}).graph(ox.NamedNode("urn:kb"))
        assert [len(fact[2].value) for fact in graph.match(None, None, None)] == [size]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "<urn:a> <urn:b> <urn:c> .\n\n<urn:a> <urn:b> <http://x/{}> .\n",
            ":3: a token is unterminated or longer",
        ),
        ('<urn:a> <urn:b> "a" .\n<urn:a> <urn:b> """{}\n', ":2: not Turtle, column 17: unexpected"),
    ],
)
def test_errors_of_long_files_of_the_knowledge_base_have_a_line(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "kb.ttl"
    path.write_text(text.format("x" * LONG))
    with pytest.raises(KbError) as error:
        open_kb({"urn:kb": path})
    assert f"{path}{said}" in str(error.value)


# ------------------------------------------------------------------ what a parser would repeat

ENTITIES = (
    '<!DOCTYPE r [<!ENTITY a0 "aaaaaaaaaa">{}]><rdf:RDF xmlns:rdf="{}" xmlns:x="u:">{}</rdf:RDF>'
)
RDF_NS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
BOMB = ENTITIES.format(
    "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 9}">' for n in range(9)),
    RDF_NS,
    "<rdf:Description><x:p>&a9;</x:p></rdf:Description>",
)
CONTEXTS = '{"@context":' + '{"a":{"@id":"u:a","@context":' * 3000 + "{}" + "}}" * 3000 + "}"
NESTED_XML = ENTITIES.format("", RDF_NS, "<rdf:Description><x:p>" * 40_000)
REFUSED = [
    ("b.rdf", BOMB, "the entity a6 expands to 7,705,890 bytes"),
    ("n.owl", NESTED_XML, "its elements are nested more than 1,000 deep"),
    ("c.jsonld", CONTEXTS, "its JSON is nested more than 100 deep"),
    ("c.ndjsonld", CONTEXTS, "its JSON is nested more than 100 deep"),
    ("n.jsonld", '{"u:a":' * 10_000, "its JSON is nested more than 100 deep"),
    ("l.jsonld", '{"u:a":' + '{"@list":[' * 30_000, "its JSON is nested more than 100 deep"),
    ("a.ngsild", "[" * 100_000, "its JSON is nested more than 500 deep"),
    (
        "n.ngsild",
        '{"id":"u:a","type":"T","a":' + '{"type":"Property","value":' * 300 + "1" + "}" * 301,
        "its JSON is nested more than 100 deep",
    ),
    (
        "c.ngsild",
        '{"id":"u:a","type":"T","@context":[' + '"https://uri.etsi.org/ngsi-ld/x",' * 1000 + "{}]}",
        "a list of more than 100 contexts",
    ),
]


@pytest.mark.parametrize(("name", "text", "said"), REFUSED, ids=[name for name, *_ in REFUSED])
def test_a_document_that_expands_is_refused_by_name(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    found, _, error = values(path)
    assert found == []
    assert error.startswith(f"{path}:1: ")
    assert said in error
    if name.endswith(("ngsild", "ndjsonld")):
        return
    with pytest.raises(KbError) as refused:
        open_kb({"urn:kb": path})
    place = f"{path}: " if name.endswith("jsonld") else f"{path}:1: "
    assert str(refused.value).startswith(place + said)


@pytest.mark.parametrize(("name", "text", "said"), REFUSED[:3], ids=["entities", "nesting", "json"])
def test_the_command_line_refuses_it_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, said: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert cli.main(["convert", str(path), str(tmp_path / "out.nq")]) == 2
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1
    assert f"{path}:1: {said}" in stderr


# ------------------------------------------------------------------ prefixes and the base

MANY = "".join(f"@prefix p{n}: <http://example.org/{n}/> .\n" for n in range(3000))
LONG_PREFIX = "@prefix p: <http://example.org/" + "x" * 100_000 + "/> .\n"
TOO_LONG = "its prefixes or base IRI are too long for the number of its names"


def test_many_prefixes_are_found_by_name(tmp_path: Path) -> None:
    """Also by pyoxigraph, which is passed only the prefixes that a statement may use."""
    path = tmp_path / "s.trig"
    uses = "".join(event(n, f"(p{n}:a p{2999 - n}:b)") for n in range(1, 300))
    path.write_text(HEAD + MANY + uses + MANY.replace("org", "com") + event(300, "p7:x"))
    found, _, error = values(path)
    assert error == ""
    assert found[-1] == "http://example.com/7/x"
    assert "http://example.org/2998/b" in found
    assert "http://example.org/255/a" in found


def test_prefixes_that_a_statement_may_use() -> None:
    reader = DocumentReader(
        EventReader(Relevance(Dictionary()), None, "", None, 1), True, False, 1, None
    )
    for n in range(20):
        reader.set_prefix(f"p{n}", f"http://example.org/{n}/")
    reader.set_prefix("", "http://example.org/")
    assert len(reader.prefixes()) == 21
    text = b'[p1:a"x"^^p2:b,(p3:c),<p4:d>|p5:e:p6] :f q:g {p19:h} .'
    names = [name for name, _ in reader.prefixes(text)]
    assert names == ["p1", "p2", "p3", "p4", "p5", "", "p19"]


@pytest.mark.parametrize("message", [False, True])
def test_prefixes_are_not_read_again_for_every_error(tmp_path: Path, message: bool) -> None:
    """Each torn line, and each message after an error, needs a parser that knows all prefixes."""
    path = tmp_path / "s.trig"
    head = 'VERSION "1.2-messages"\n' if message else ""
    bad = ":a :b <<\n" + "MESSAGE\n:a :b :c .\n" if message else ":a :b <x\n"
    path.write_text(head + HEAD + MANY + bad * 1000)
    _, log, error = values(path, "skip")
    assert "too much would be read again after its errors and for its messages" in error
    assert 0 < len(log) < 1000


@pytest.mark.parametrize(
    "text",
    [
        LONG_PREFIX + "".join(event(n, f"p:{n}") for n in range(2000)),
        LONG_PREFIX + event(1, "(" + " ".join(f"p:{n}" for n in range(2000)) + ")"),
        LONG_PREFIX + event(1, "<<\n") + "".join(event(n, f"p:{n}") for n in range(2000)),
        f"@base <http://example.org/{'x' * 8000}/> .\n"
        + "".join(event(n, f"<{n}>") for n in range(40_000)),
        f"@base <http://example.org/{'x' * 8000}/> .\n"
        + "".join(event(n, f"<?{n}>") for n in range(40_000)),
    ],
    ids=["names", "list", "after an error", "base", "unusual references"],
)
def test_long_prefixes_are_bounded_by_their_uses(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.trig"
    path.write_text(HEAD + text)
    error = values(path, "skip")[2] or "\n".join(values(path, "skip")[1])
    assert TOO_LONG in error
    assert f"{path}:" in error
    path = tmp_path / "kb.trig"
    path.write_text(HEAD + text)
    with pytest.raises(KbError) as refused:
        open_kb({"urn:kb": path})
    assert TOO_LONG in str(refused.value) or "<<" in text


def test_a_base_that_grows_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    path.write_text(HEAD + "@base <http://e.org/> .\n" + "@base <aaaaaaaa/> .\n" * 2000)
    assert values(path)[2].startswith(f"{path}:")
    assert "the base IRI has more than 8,192 characters" in values(path)[2]


# ------------------------------------------------------------------ long lines of small files


ONE = '<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> "1"^^<urn:x> {} .\n'


@pytest.mark.parametrize("module", ["gzip", "bz2", "lzma"])
@pytest.mark.parametrize(
    ("name", "front", "said"),
    [
        ("s.nq", ONE.format("<urn:g>") + '<urn:a> <urn:b> "', ":2: a line of more than 4 MiB"),
        ("s.nq", '<urn:a> <urn:b> "', ":1: a line of more than 4 MiB"),
        ("s.trig", HEAD + event(1, "1") + ':g2 { :a :b """', "a line of more than 4 MiB"),
        ("s.trig", HEAD + event(1, "1") + ':g2 { :a :b """\n', "a statement of more than 4 MiB"),
        ("s.rdf", "<a>", ":1: a line of more than 4 MiB"),
        ("s.jsonld", '{"urn:a":"', ":1: a line of more than 4 MiB"),
    ],
)
def test_a_line_that_a_small_file_contains_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str, front: str, said: str
) -> None:
    for owner in (lines_module, documents_module):
        monkeypatch.setattr(owner, "MAX_LINE_BYTES", 4 << 20)
    unit = b"a" * 99 + (b"\n" if front.endswith("\n") else b"a")
    path = tmp_path / f"{name}.{ {'gzip': 'gz', 'bz2': 'bz2', 'lzma': 'xz'}[module] }"
    packed = import_module(module).compress(front.encode() + unit * 60_000)
    assert len(packed) < 100_000
    path.write_bytes(packed)
    assert said in values(path)[2]


def test_the_dictionary_of_xz_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header alone can claim 4 GiB."""
    path = tmp_path / "s.nq.xz"
    path.write_bytes(lzma.compress(b"# a comment\n", preset=9))
    assert values(path)[2] == ""
    monkeypatch.setattr(compression, "_XZ_MAX_BYTES", 1 << 24)
    assert "the xz data is damaged: Memory usage limit exceeded" in values(path)[2]
