"""`triples:N`, lateness, and the merge of several streams."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import Reading, at, options, quad, shown

from spaseq.errors import InputError
from spaseq.io.merge import merge, merged_batches
from spaseq.io.read_options import Framing, TimeDomain
from spaseq.io.source import Source
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import NUMBER, Event
from spaseq.rdf.native._terms import Dictionary, EventBatch
from spaseq.rdf.time import from_micros

TRIPLES = "".join(f"<e:s{i}> <e:p> <e:o> .\n" for i in range(4))


def events_text(*times: int) -> str:
    return "".join(at(f"g{place}", second) + quad(f"g{place}") for place, second in
                   enumerate(times))  # fmt: skip


def test_triples_are_timed_by_their_place(tmp_path: Path) -> None:
    for name in ("s.nt", "s.nq", "s.ttl"):
        read = Reading(tmp_path, TRIPLES, name, "triples:2")
        assert (read.times, read.sizes, read.lines, read.error) == ([0, 1], [2, 2], [1, 3], "")
        assert [event.time.term.value for event in read.events] == ["0", "1"]


def test_repeated_triples_count_once_each(tmp_path: Path) -> None:
    read = Reading(tmp_path, "<e:s> <e:p> <e:o> .\n" * 4, "s.nt", "triples:2")
    assert read.sizes == [1, 1]


def test_the_timestamp_is_one_more_triple(tmp_path: Path) -> None:
    text = "".join(
        f'<e:s> <e:p> <e:o{i}> .\n<e:s> <e:t> "{i}"^^<http://www.w3.org/2001/XMLSchema#int> .\n'
        for i in (3, 8)
    )
    read = Reading(tmp_path, text, "s.nt", "triples:1", time_predicate="e:t")
    assert (read.times, read.sizes) == ([3, 8], [2, 2])


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (TRIPLES + "<e:s> <e:p> <e:o> .", {}, "FILE:5: the last event is incomplete: 1 of its 2"),
        (quad("g"), {}, "FILE:1: a graph name among the triples"),
        (TRIPLES, {"time_predicate": "e:t"}, "FILE:1: 3 triples without a timestamp (<e:t>)"),
    ],
)
def test_bad_triples(tmp_path: Path, text: str, more: dict[str, str], said: str) -> None:
    read = Reading(tmp_path, text, "s.nq", "triples:2", **more)
    assert said in read.error


@pytest.mark.parametrize("text", ["triples:0", "triples:", "triples:x", "graphs", ""])
def test_unknown_framings(text: str) -> None:
    with pytest.raises(ValueError, match="triples:N"):
        Framing.parse(text)


def test_lateness_puts_events_in_order(tmp_path: Path) -> None:
    text = events_text(5, 3, 4, 9, 7, 7, 9)
    read = Reading(tmp_path, text, lateness=2_000_000)
    assert shown(read.events) == ["s@3.0", "s@4.0", "s@5.0", "s@7.0", "s@7.1", "s@9.0", "s@9.1"]
    assert read.source.counters.late == 0


def test_late_events_are_counted_and_logged(tmp_path: Path) -> None:
    read = Reading(tmp_path, events_text(5, 2, 3, 9, 6), lateness=2_000_000)
    assert shown(read.events) == ["s@3.0", "s@5.0", "s@9.0"]
    assert read.source.counters.late == 2
    assert [line.replace(read.path, "FILE") for line in read.log] == [
        "late event dropped: FILE:3: its time is 2, but all times before 3 are closed",
        "late event dropped: FILE:9: its time is 6, but all times before 7 are closed",
    ]


def test_no_lateness_at_all_still_drops_and_counts(tmp_path: Path) -> None:
    read = Reading(tmp_path, events_text(2, 1, 2), lateness=0)
    assert (shown(read.events), read.source.counters.late) == (["s@2.0", "s@2.1"], 1)


def test_an_error_comes_after_what_lateness_held_back(tmp_path: Path) -> None:
    read = Reading(tmp_path, events_text(1, 2) + quad("x"), lateness=60_000_000)
    assert shown(read.events) == ["s@1.0", "s@2.0"]
    assert "FILE:5: the graph <e:x> has no timestamp" in read.error


@given(st.lists(st.integers(0, 20), max_size=12), st.integers(0, 10))
def test_reordering_is_a_stable_sort_of_what_is_in_time(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], lateness: int
) -> None:
    read = Reading(tmp_path_factory.mktemp("x"), events_text(*times), lateness=lateness * 10**6)
    greatest, kept = -100, []
    for place, second in enumerate(times):
        if second >= greatest - lateness:
            kept.append((second, place))
            greatest = max(greatest, second)
    assert [event.name.value for event in read.events if event.name] == [
        f"e:g{place}" for _, place in sorted(kept)
    ]
    assert read.source.counters.late == len(times) - len(kept)


def stream(name: str, *times: int, fails: bool = False) -> Iterator[Event]:
    last, ordinal = None, 0
    for second in times:
        ordinal = ordinal + 1 if second == last else 0
        last = second
        yield Event(name, from_micros(second * 10**6, NUMBER), ordinal, ())
    if fails:
        raise InputError("broken", name)


def until_error(events: Iterator[Event]) -> tuple[list[str], str]:
    got: list[Event] = []
    try:
        for event in events:
            got.append(event)
    except InputError as error:
        return shown(got), error.file
    return shown(got), ""


def test_merge_goes_by_time_ordinal_and_declared_order() -> None:
    merged = merge([stream("b", 1, 1, 3), stream("a", 1, 1, 2)])
    assert shown(merged) == ["b@1.0", "a@1.0", "b@1.1", "a@1.1", "a@2.0", "b@3.0"]
    assert shown(merge([])) == shown(merge([stream("a")])) == []
    assert shown(merge([stream("a"), stream("b", 1)])) == ["b@1.0"]


def test_a_failure_waits_for_what_is_before_it() -> None:
    def failing(first: str) -> list[Iterator[Event]]:
        streams = [stream("a", 1, 2, 2, fails=True), stream("b", 1, 2, 2, 2, 3)]
        return streams if first == "a" else streams[::-1]

    before = ["a@1.0", "b@1.0", "a@2.0", "b@2.0", "a@2.1", "b@2.1"]
    assert until_error(merge(failing("a"))) == (before, "a")
    swapped = ["b@1.0", "a@1.0", "b@2.0", "a@2.0", "b@2.1", "a@2.1", "b@2.2"]
    assert until_error(merge(failing("b"))) == (swapped, "a")


def test_of_two_failures_the_earlier_is_told() -> None:
    merged = merge([stream("a", 1, 5, fails=True), stream("b", 1, 2, fails=True)])
    assert until_error(merged) == (["a@1.0", "b@1.0", "b@2.0"], "b")


def in_batches(events: Iterator[Event], size: int) -> Iterator[EventBatch]:
    """Encoded batches of a source, which fails where the source does."""
    dictionary = Dictionary()
    batch: EventBatch | None = None
    failure: InputError | None = None
    while failure is None:
        try:
            event = next(events, None)
        except InputError as error:
            failure, event = error, None
        if event is not None:
            batch = batch or EventBatch(dictionary, event.stream)
            batch.add((), event.time.micros, event.ordinal, None, event.time.term)
        if batch is not None and (event is None or len(batch) == size):
            yield batch
            batch = None
        if event is None:
            break
    if failure is not None:
        raise failure


@pytest.mark.parametrize("seed", range(100))
def test_merged_batches_have_the_events_of_the_merge(seed: int) -> None:
    chance = random.Random(seed)
    drawn = [
        (sorted(chance.choices(range(6), k=chance.randint(1, 12))), chance.random() < 0.3)
        for _ in range(chance.randint(1, 4))
    ]
    size = chance.randint(1, 5)

    def streams() -> list[Iterator[Event]]:
        return [
            stream(name, *times, fails=fails)
            for name, (times, fails) in zip("abcd", drawn, strict=False)
        ]

    def merged() -> Iterator[Event]:
        for sequence in merged_batches([in_batches(one, size) for one in streams()]):
            for number in range(len(sequence)):
                yield EncodedEvent(*sequence.position(number))

    assert until_error(merged()) == until_error(iter(merge(streams())))


def test_streams_of_different_domains_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a.nq").write_text(at("a", 1) + quad("a"))
    (tmp_path / "b.nq").write_text(at("b", "2026-01-01T00:00:00Z") + quad("b"))
    domain = TimeDomain()
    sources = [
        Source(f"urn:{name}", [str(tmp_path / f"{name}.nq")], options(), place, domain)
        for place, name in enumerate("ab")
    ]
    with pytest.raises(InputError, match=r"b\.nq:1: the timestamp is a date, .*a\.nq:1"):
        list(merge(sources))


def test_blank_nodes_of_different_streams_are_different(tmp_path: Path) -> None:
    path = tmp_path / "a.nq"
    path.write_text(at("a", 1) + quad("a", "_:b"))
    sources = [Source(f"urn:{place}", [str(path)], options(), place) for place in range(2)]
    one, two = merge(sources)
    assert one.facts[0][2] != two.facts[0][2]
