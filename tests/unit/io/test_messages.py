"""RDF Message Logs: the interoperability cases of the community group, and the scanner."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import GENERATED, INTEGER, Reading, options

from spaseq import run
from spaseq.io.messages import DotlessDelimiter, Scanner
from spaseq.io.pushed_messages import PushedMessages
from spaseq.io.source import Source
from spaseq.rdf.native._framing import Minter
from spaseq.rdf.native._terms import Dictionary, Relevance

V = 'VERSION "1.2-messages"\n'
PREFIX = "PREFIX ex: <http://example.org/>\n"


def triple(number: int, graph: str = "") -> str:
    return f'<e:s{number}> {GENERATED} "{number}"^^{INTEGER} {graph}.\n'


@pytest.mark.parametrize("name", ["s.ttl", "s.trig", "s.nt", "s.nq"])
@pytest.mark.parametrize(
    ("text", "times", "lines"),
    [
        (V + triple(1), [1], [2]),
        (V + triple(1) + "MESSAGE\n" + triple(2), [1, 2], [2, 4]),
        (V + "MESSAGE\n" + triple(1), [1], [3]),
        (V + triple(1) + "MESSAGE\nMESSAGE\n" + triple(2), [1, 2], [2, 5]),
        (V + triple(1) + "MESSAGE\n", [1], [2]),
        (V + triple(1) + " MESSAGE # of MESSAGE\n\n" + triple(2), [1, 2], [2, 5]),
        ("# VERSION\n\nVERSION '1.1-messages' # x\n" + triple(1) + "MESSAGE", [1], [4]),
    ],
)
def test_all_syntaxes(tmp_path: Path, name: str, text: str, times: list[int], lines: list[int]):
    read = Reading(tmp_path, text, name)
    assert (read.times, read.lines, read.error) == (times, lines, "")
    assert read.names == [""] * len(times)


@pytest.mark.parametrize("name", ["s.ttl", "s.trig", "s.nt", "s.nq"])
@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (triple(1), [1]),
        (triple(1) + "MESSAGE\n" + triple(2), [1, 1]),
        ("MESSAGE\n" + triple(1), [0, 1]),
        (triple(1) + "MESSAGE\nMESSAGE\n" + triple(2), [1, 0, 1]),
        (triple(1) + "MESSAGE\n", [1]),
        (triple(1) + "MESSAGE\nMESSAGE\n", [1, 0]),
        ("MESSAGE\n" * 3, [0, 0, 0]),
    ],
)
def test_empty_messages_are_heartbeats_if_they_have_a_time(
    tmp_path: Path, name: str, text: str, sizes: list[int]
) -> None:
    read = Reading(tmp_path, V + text, name, arrival_time=True)
    assert (read.sizes, read.error, read.source.counters.empty) == (sizes, "", 0)
    read = Reading(tmp_path, V + text, name)
    assert read.sizes == [1] * text.count("<e:s")
    assert read.source.counters.empty == sizes.count(0)


def test_a_heartbeat_breaks_contiguity(tmp_path: Path) -> None:
    query = """PREFIX : <e:> SELECT ?x WITHIN 1 HOUR FROM STREAM S <urn:s>
    WHERE { SEQ(A , B) DEFINE GPM A ON S { :a :n ?x } DEFINE GPM B ON S { :b :n ?x } }"""
    clock = options(arrival_time=True)
    for between, found in (("", 1), ("MESSAGE\n", 0)):
        path = tmp_path / "s.nt"
        path.write_text(f"{V}<e:a> <e:n> <e:x> .\nMESSAGE\n{between}<e:b> <e:n> <e:x> .\n")
        assert len(list(run(query, streams={"urn:s": str(path)}, options=clock))) == found


def test_an_empty_message_of_a_channel_has_its_time() -> None:
    dictionary = Dictionary()
    for times, sizes, empty in (((10, 20, 30), [1, 0, 1], 0), ((None,) * 3, [1, 1], 1)):
        source = Source("urn:s", [], options("message"))
        messages = PushedMessages(source, Relevance(dictionary), Minter(0), "a channel")
        for number, time in enumerate(times):
            text = "" if number == 1 else triple(number)
            messages.feed(text.encode(), "application/n-triples", time)
        (batch,) = messages.batches()
        assert messages.failure is None
        assert [len(batch.facts(index)) for index in range(len(batch))] == sizes
        assert source.counters.empty == empty


@pytest.mark.parametrize("delimiter", ["@message .", "@message.", "@message\n.", "message"])
@pytest.mark.parametrize("version", ['@version "1.2-messages" .\n', V])
def test_spellings_of_turtle(tmp_path: Path, delimiter: str, version: str) -> None:
    text = f"{version}{PREFIX}{triple(1)}{delimiter}\n{triple(2)}"
    assert Reading(tmp_path, text, "s.ttl").times == [1, 2]


def test_delimiters_may_share_a_line_with_statements(tmp_path: Path) -> None:
    text = V + PREFIX + triple(1).strip() + " MESSAGE MESSAGE " + triple(2).strip() + " @message . "
    read = Reading(tmp_path, text + triple(3), "s.ttl")
    assert (read.times, read.lines) == ([1, 2, 3], [3, 3, 3])


def test_prefixes_outlive_their_message_and_can_change(tmp_path: Path) -> None:
    text = (
        V + "BASE <http://one/>\nPREFIX ex: <http://example.org/one/>\n"
        f"ex:s {GENERATED} 1 .\nMESSAGE\n<s> {GENERATED} 2 ; ex:p ex:o .\nMESSAGE\n"
        f"PREFIX ex: <http://example.org/two/>\nex:s {GENERATED} 3 .\n"
    )
    read = Reading(tmp_path, text, "s.ttl")
    subjects = [[fact[0].value for fact in event.facts] for event in read.events]
    assert subjects == [
        ["http://example.org/one/s"],
        ["http://one/s", "http://one/s"],
        ["http://example.org/two/s"],
    ]
    assert read.events[1].facts[1][1].value == "http://example.org/one/p"


def test_blank_nodes_are_scoped_to_their_message(tmp_path: Path) -> None:
    for name in ("s.nt", "s.ttl"):
        text = V + f"_:b {GENERATED} {number(1)} .\nMESSAGE\n_:b {GENERATED} {number(2)} .\n"
        one, two = Reading(tmp_path, text, name).events
        assert one.facts[0][0] != two.facts[0][0]


def number(value: int) -> str:
    return f'"{value}"^^{INTEGER}'


def test_a_message_is_the_union_of_its_graphs(tmp_path: Path) -> None:
    lines = triple(1) + triple(1, "<e:g> ") + triple(1, "<e:h> ").replace("s1", "t1")
    assert Reading(tmp_path, V + lines, "s.nq").sizes == [2]
    text = V + PREFIX + triple(1) + "ex:g { ex:s ex:p 1, 2 . }\nMESSAGE\n" + triple(2)
    assert Reading(tmp_path, text, "s.trig").sizes == [3, 1]


def test_the_time_predicates_and_their_order(tmp_path: Path) -> None:
    sosa, published = (
        "<http://www.w3.org/ns/sosa/resultTime>",
        "<https://www.w3.org/ns/activitystreams#published>",
    )
    text = (
        V + f"<e:s> {published} 1 .\nMESSAGE\n<e:s> {published} 9 ; {sosa} 2 .\nMESSAGE\n"
        f"<e:s> {published} 9 ; {sosa} 9 ; {GENERATED} 3 .\n"
    )
    assert Reading(tmp_path, text, "s.ttl").times == [1, 2, 3]
    assert "FILE:2: a message" in Reading(tmp_path, text, "s.ttl", time_predicate=sosa[1:-1]).error


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (triple(1) + "MESSAGE\n", "s.ttl", "FILE:2: not Turtle"),
        (triple(1) + "MESSAGE\n", "s.nt", "FILE:2: a message delimiter"),
        (V + triple(1) + "@message <e:x>\n", "s.ttl", "FILE:3: @message must be followed by a dot"),
        (V + "<e:g> {\n <e:a> <e:b> <e:c> .\nMESSAGE\n}\n", "s.trig", "FILE:4: not TriG"),
        (V + "<e:a> <e:b>\nMESSAGE\n<e:c> .\n", "s.ttl", "FILE:3: not Turtle"),
        (V + triple(1) + "MESSAGE\n<e:a> <e:b> <e:c> .\n", "s.ttl", "FILE:4: a message without"),
        (V + triple(2) + "MESSAGE\n" + triple(1), "s.ttl", "FILE:4: time runs backwards"),
        (V + triple(1) + triple(2) + "MESSAGE\n", "s.ttl", "FILE:2: an event with two timestamps"),
        (V + triple(1) + "MESSAGE\n" + triple(2) + "<e:a> <e:b> x:y .", "s.ttl", "FILE:5: not Tur"),
    ],
)
def test_errors(tmp_path: Path, text: str, name: str, said: str) -> None:
    read = Reading(tmp_path, text, name)
    assert said in read.error
    again = Reading(tmp_path, text, name, on_error="skip")
    assert not again.error
    assert again.source.counters.skipped


def test_skipping_a_bad_message_keeps_its_prefixes(tmp_path: Path) -> None:
    text = V + PREFIX + "ex:a oops .\nMESSAGE\n" + f"ex:s {GENERATED} 2 .\n"
    read = Reading(tmp_path, text, "s.ttl", on_error="skip")
    assert (read.times, read.source.counters.skipped) == ([2], 1)


def test_messages_on_request_without_an_announcement(tmp_path: Path) -> None:
    text = triple(1) + "MESSAGE\n" + triple(2)
    for name in ("s.nq", "s.ttl"):
        assert Reading(tmp_path, text, name, "message").times == [1, 2]


@pytest.mark.parametrize(
    "line",
    [
        '"MESSAGE"', "'MESSAGE @message .'", "# MESSAGE", "<e:MESSAGE>", "ex:MESSAGE",
        "MESSAGE:x", "<e:s> <e:p> ex:a\\#MESSAGE", '"x"@message .', '"x" @message .',
        '"""MESSAGE\nMESSAGE"""', "'''a\n'MESSAGE''\n'''", '"""a\\"""\nMESSAGE"""',
        'ex:a-MESSAGE, _:MESSAGE', '"x"\n@message .', "MESSAGES",
    ],
)  # fmt: skip
def test_what_is_no_delimiter(line: str) -> None:
    scanner = Scanner()
    marks = [scanner.marks((part + "\n").encode()) for part in line.split("\n")]
    assert not any(marks)


def test_a_comment_that_ends_in_a_quote_hides_no_delimiter() -> None:
    scanner = Scanner()
    assert scanner.marks(b'<e:s> <e:p> 1 . # "x"\n') == []
    assert scanner.marks(b"@message .\n") == [(0, 8, True), (9, 10, False)]
    scanner.marks(b"@message\n")
    with pytest.raises(DotlessDelimiter):
        scanner.marks(b"<e:s>\n")


PIECES = st.sampled_from(
    ['ex:s ex:p 1 .\n', 'ex:s ex:p "MESSAGE" .\n', 'ex:s ex:p """a\nMESSAGE\n"b""" .\n',
     "ex:s ex:p 'x'@message .\n", "# MESSAGE\n", "ex:MESSAGE a <e:MESSAGE> .\n", "\n",
     "ex:s ex:p '''\n@message .\n''' .\n", "ex:s ex:p\n  [ ex:p 'it' ] .\n"]
)  # fmt: skip


@given(st.lists(st.lists(PIECES, max_size=5), max_size=5))
def test_the_cut_is_where_the_delimiters_were_put(
    tmp_path_factory: pytest.TempPathFactory, messages: list[list[str]]
) -> None:
    stamped = [f"ex:s {GENERATED} {i} .\n" + "".join(m) for i, m in enumerate(messages)]
    folder = tmp_path_factory.mktemp("log")
    read = Reading(folder, V + PREFIX + "MESSAGE\n".join(stamped), "s.ttl")
    assert read.error == ""
    assert read.times == list(range(len(messages)))
    alone = [Reading(folder, PREFIX + text, "s.ttl", "message").sizes[0] for text in stamped]
    assert read.sizes == alone
