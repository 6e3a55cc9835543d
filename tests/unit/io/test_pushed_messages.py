"""Messages of a channel: one by one and several together, times, syntaxes, errors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.errors import InputError
from spaseq.io.pushed_messages import Message, PushedMessages
from spaseq.io.read_options import ReadOptions
from spaseq.io.source import Source
from spaseq.rdf.native._framing import Minter
from spaseq.rdf.native._terms import Dictionary, EventBatch, Relevance

S = "http://example.org/s"
GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"


def reader(options: ReadOptions | None = None) -> PushedMessages:
    source = Source("http://example.org/stream", ["mqtt"], options or ReadOptions())
    return PushedMessages(source, Relevance(Dictionary()), Minter(0), "mqtt")


def shown(batches: Sequence[EventBatch]) -> list[tuple[object, ...]]:
    """The events of batches."""
    return [
        (batch.micros(i), batch.ordinal(i), sorted(batch.n_triples(i).splitlines()))
        for batch in batches
        for i in range(len(batch))
    ]


def outcome(
    messages: Sequence[Message], together: bool, options: ReadOptions | None = None
) -> tuple[list[tuple[object, ...]], str]:
    """The events of messages, and the error that ended them."""
    pushed = reader(options)
    found: list[tuple[object, ...]] = []
    if together:
        pushed.feed_all(messages)
        found += shown(pushed.batches())
    else:
        for message in messages:
            if pushed.failure is None:
                pushed.feed(*message)
                found += shown(pushed.batches())
    assert pushed.failure is not None or pushed.restart()["count"] == len(messages)
    return found, str(pushed.failure or "")


def plain(number: int) -> bytes:
    return f'<{S}> <http://example.org/v> "{number}" .\n_:b <http://example.org/v> _:b .'.encode()


TEXTS = st.sampled_from(
    [
        plain(1), plain(2) + b"\n", plain(3) + b"\n\n# end", b"", b"# nothing", b" " + plain(4),
        plain(5) + b"\nMESSAGE\n" + plain(6), b'VERSION "1.2"\n' + plain(7),
        b'<http://e/s> <http://e/p> "MESSAGE" .', plain(8).replace(b"\n", b"\r\n"),
        b"<http://e/s> <http://e/p> .", b"<http://e/s> <http://e/p>", b"_:x", b"nonsense",
        b"<http://e/s> <http://e/p> <http://e/o> <http://e/g> .\n",
        b'<http://e/s> <http://e/p> "a\\u0041b"@en .\n', "<http://e/é> <http://e/p> 1 .".encode(),
        b"<http://e/s> <http://e/p> <http://e/o> .\n<http://e/s> <http://e/p>\n",
    ]
)  # fmt: skip
MESSAGES = st.lists(
    st.tuples(
        TEXTS,
        st.sampled_from([None, None, None, "application/n-quads", "text/turtle", "text/csv"]),
        st.sampled_from([None, 5, 6]),
    ),
    max_size=8,
).map(lambda drawn: [(text, kind, time and time * 1_000_000) for text, kind, time in drawn])


@given(MESSAGES, st.booleans(), st.sampled_from(["stop", "skip"]), st.booleans())
def test_together_they_are_what_they_are_one_by_one(
    messages: list[Message], timed: bool, on_error: str, in_order: bool
) -> None:
    if timed:
        messages = [(text, kind, 1) for text, kind, _ in messages]
    if in_order:
        messages.sort(key=lambda message: message[2] or 0)
    options = ReadOptions(on_error=on_error)  # type: ignore[arg-type]
    assert outcome(messages, True, options) == outcome(messages, False, options)


def test_each_message_has_its_time() -> None:
    messages: list[Message] = [(plain(number), None, number * 1000) for number in range(1, 50)]
    found, failure = outcome(messages, True)
    assert failure == ""
    assert [event[0] for event in found] == [number * 1000 for number in range(1, 50)]
    assert found == outcome(messages, False)[0]


def test_an_error_names_the_message_and_the_line_in_it() -> None:
    bad = plain(1) + b"\n<http://e/s> nonsense .\n"
    messages: list[Message] = [(plain(1), None, 1), (plain(2), None, 2), (bad, None, 3)]
    pushed = reader()
    pushed.feed_all(messages)
    assert len(shown(pushed.batches())) == 2
    assert isinstance(pushed.failure, InputError)
    assert (pushed.failure.file, pushed.failure.line) == ("mqtt, message 3", 3)


def test_times_in_messages(tmp_path: object) -> None:
    number = "http://www.w3.org/2001/XMLSchema#integer"
    messages: list[Message] = [
        (f'<{S}> <{GENERATED}> "{second}"^^<{number}> .'.encode(), None, 99) for second in (3, 4)
    ]
    options = ReadOptions(time_predicate=GENERATED)
    found, failure = outcome(messages, True, options)
    assert (failure, [event[0] for event in found]) == ("", [3_000_000, 4_000_000])
    untimed: list[Message] = [*messages, (plain(1), None, 99)]
    assert "mqtt, message 3:1: a message without a timestamp" in outcome(untimed, True, options)[1]


@pytest.mark.parametrize("kind", ["text/csv", "application/x-unknown"])
def test_an_unknown_media_type_is_an_error(kind: str) -> None:
    messages: list[Message] = [(plain(1), None, 1), (plain(1), kind, 1)]
    said = outcome(messages, True)[1]
    assert said.startswith(f"mqtt, message 2: the media type {kind} names no RDF syntax")
    assert "--input-format" in said


@pytest.mark.parametrize(
    ("url", "kind", "data", "said"),
    [
        (
            "mqtt://h/t",
            None,
            b'{"@id": "http://e/a"}',
            "(no media type), and looks like JSON-LD: name its syntax with ?type=application/"
            "ld+json in the URL of the source, or --input-format=jsonld",
        ),
        (
            "wss://h/t",
            None,
            b"@prefix : <http://e/> . :a :v 1 .",
            "and looks like TriG: name its syntax with #type=application/trig in the URL",
        ),
        (
            "kafka://h/t",
            "",
            b"hello",
            "(no media type): name its syntax with ?type=MEDIA/TYPE in the URL of the source, or",
        ),
        (
            "redis://h/t",
            "text/plain",
            b"[]",
            "(the media type text/plain names no syntax): name its syntax with --input-format",
        ),
        ("nats://h/t", "application/n-quads", b"hello", "must be an IRI or a blank node"),
    ],
)
def test_a_message_without_a_media_type_says_how_to_name_it(
    url: str, kind: str | None, data: bytes, said: str
) -> None:
    source = Source("http://example.org/stream", [url], ReadOptions())
    pushed = PushedMessages(source, Relevance(Dictionary()), Minter(0), url)
    pushed.feed(data, kind, 1)
    assert said in str(pushed.failure)
    assert ("name its syntax" in said) == ("name its syntax" in str(pushed.failure))


def test_messages_that_are_read_together_say_it_too() -> None:
    bad = b"<http://e/s> <http://e/p> 1 .\n"
    pushed = reader()
    pushed.feed_all([(plain(1) + b"\n", None, 1), (bad, None, 2), (plain(3) + b"\n", None, 3)])
    assert str(pushed.failure).startswith("mqtt, message 2:1: not N-Quads")
    assert "name its syntax with --input-format" in str(pushed.failure)
