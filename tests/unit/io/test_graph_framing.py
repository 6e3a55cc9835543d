"""Named graphs as events: timestamps beside and inside them, and all that can be wrong."""

from pathlib import Path

import pytest
from reading import DATE_TIME, GENERATED, Reading, at, quad

TRIG = """
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <e:> .
:e1 prov:generatedAtTime "2026-01-01T00:00:00Z"^^xsd:dateTime .
:e1 { :s :p :o ;
         :q [ :r 1 ] . }
:e2 { :s :p :o . }
:e2 prov:generatedAtTime "2026-01-01T00:00:05Z"^^xsd:dateTime .
"""


def test_timestamp_before_the_graph(tmp_path: Path) -> None:
    read = Reading(tmp_path, at("a", 1) + quad("a") + quad("a", '"x"') + at("b", 2) + quad("b"))
    assert read.names == ["e:a", "e:b"]
    assert read.times == [1, 2]
    assert read.sizes == [2, 1]
    assert read.lines == [1, 4]
    assert not read.error


def test_timestamp_after_the_graph(tmp_path: Path) -> None:
    read = Reading(tmp_path, quad("a") + at("a", 1) + quad("b") + at("b", 2))
    assert (read.names, read.times, read.lines) == (["e:a", "e:b"], [1, 2], [1, 3])


def test_a_timestamp_without_a_graph_is_a_heartbeat(tmp_path: Path) -> None:
    read = Reading(tmp_path, at("a", 1) + at("b", 2) + quad("b") + at("c", 3))
    assert (read.names, read.times, read.sizes) == (["e:a", "e:b", "e:c"], [1, 2, 3], [0, 1, 0])


def test_the_same_timestamp_on_both_sides(tmp_path: Path) -> None:
    read = Reading(tmp_path, at("a", 1) + quad("a") + at("a", 1) + quad("b") + at("b", 2))
    assert (read.names, read.times, read.error) == (["e:a", "e:b"], [1, 2], "")


def test_different_timestamps_on_both_sides(tmp_path: Path) -> None:
    read = Reading(tmp_path, at("a", 1) + quad("a") + at("a", 2))
    assert "FILE:3: an event with two timestamps" in read.error


def test_ordinals_count_equal_timestamps(tmp_path: Path) -> None:
    text = "".join(
        at(name, int(second)) + quad(name) for name, second in zip("abcd", "1122", strict=True)
    )
    read = Reading(tmp_path, text)
    assert [event.ordinal for event in read.events] == [0, 1, 0, 1]


def test_facts_are_distinct(tmp_path: Path) -> None:
    assert Reading(tmp_path, at("a", 1) + quad("a") * 3).sizes == [1]


def test_other_default_graph_triples_are_counted(tmp_path: Path) -> None:
    other = "<e:a> <e:author> <e:me> .\n"
    read = Reading(tmp_path, at("a", 1) + other + quad("a") + other)
    assert (read.names, read.sizes, read.source.counters.unused) == (["e:a"], [1], 2)


def test_blank_nodes_belong_to_their_event(tmp_path: Path) -> None:
    text = (
        at("a", 1) + quad("a", "_:x", "_:x") + quad("a", "_:y", "_:x")
        + at("b", 2) + quad("b", "_:x")
    )  # fmt: skip
    read = Reading(tmp_path, text)
    (first, second), (third,) = (event.facts for event in read.events)
    assert first[0] == first[2] == second[0]
    assert second[2] != first[0]
    assert third[2] not in {first[0], second[2]}
    assert [str(first[0]), str(third[2])] == ["_:s0e1b0", "_:s0e2b0"]


def test_a_blank_graph_name_is_the_events_own_too(tmp_path: Path) -> None:
    text = f'_:g {GENERATED} "2026-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .\n'
    read = Reading(tmp_path, text + "_:g <e:p> <e:o> _:g .\n")
    assert read.events[0].name == read.events[0].facts[0][0]


@pytest.mark.parametrize("name", ["s.trig", "s.trig.gz"])
def test_trig(tmp_path: Path, name: str) -> None:
    read = Reading(tmp_path, TRIG, name)
    assert (read.names, read.sizes, read.lines) == (["e:e1", "e:e2"], [3, 1], [5, 8])
    assert read.times[1] - read.times[0] == 5


def test_gzip_and_carriage_returns(tmp_path: Path) -> None:
    text = (at("a", 1) + "\n# a comment\n" + quad("a") + at("b", 2) + quad("b")).strip()
    for ending in ("\r\n", "\r"):
        read = Reading(tmp_path, text.replace("\n", ending), "s.nq.gz")
        assert (read.names, read.lines, read.error) == (["e:a", "e:b"], [1, 5], "")


def test_byte_order_mark(tmp_path: Path) -> None:
    assert Reading(tmp_path, b"\xef\xbb\xbf" + (at("a", 1) + quad("a")).encode()).names == ["e:a"]


def test_time_predicate_beside_the_graph_comes_first(tmp_path: Path) -> None:
    text = (
        at("a", 1).replace(GENERATED, "<e:t>")
        + quad("a")
        + quad("a", '"9"').replace("<e:p>", "<e:t>")
    )
    assert Reading(tmp_path, text, time_predicate="e:t").times == [1]


def test_time_predicate_inside_the_graph(tmp_path: Path) -> None:
    inside = f'<e:s> <e:t> "2026-01-01T00:00:00Z"^^{DATE_TIME} <e:a> .\n'
    read = Reading(tmp_path, quad("a") + inside, time_predicate="e:t")
    assert (read.times, read.sizes) == ([1767225600], [2])
    assert (
        "none among its statements here" in Reading(tmp_path, quad("a"), time_predicate="e:t").error
    )


def test_arrival_time_takes_the_clock_and_never_goes_back(tmp_path: Path) -> None:
    ticks = iter([7, 5, 9])
    read = Reading(
        tmp_path,
        quad("a") + quad("b") + quad("c"),
        arrival_time=True,
        clock=lambda: next(ticks) * 10**6,
    )
    assert read.times == [7, 7, 9]
    assert read.events[0].time.domain == "dateTime"


def test_time_unit(tmp_path: Path) -> None:
    assert Reading(tmp_path, at("a", 1500) + quad("a"), unit="ms").times == [1.5]


@pytest.mark.parametrize(
    ("text", "said", "delivered"),
    [
        (at("a", 1) + quad("a") + quad("b"), "FILE:3: the graph <e:b> has no timestamp", 1),
        (quad("a") + at("a", 1) + quad("b"), "FILE:3: the graph <e:b> has no timestamp", 1),
        (
            at("a", 1) + quad("a") + at("b", 2) + quad("b") + quad("a"),
            "FILE:5: a quad of the graph <e:a>, which began at line 1 and is already complete",
            2,
        ),
        (quad("a") + at("a", 1) + quad("a"), "FILE:3: a quad of the graph <e:a>", 1),
        (
            at("a", 1) + at("b", 2) + quad("b") + at("a", 3),
            "FILE:4: a timestamp of <e:a>, which began at line 1 and is already complete",
            2,
        ),
        (at("a", 2) + quad("a") + at("b", 1) + quad("b"), "FILE:3: time runs backwards", 1),
        (at("a", 1) + quad("a") + "what is this\n", "FILE:3: not N-Quads", 1),
        (
            at("a", 1) + quad("a") + at("b", 2) + quad("b").rstrip("\n .>"),
            "FILE:4: not N-Quads",
            1,
        ),
        (at("a", 1) + quad("a") + '<e:s> <e:p> "open\n' + at("b", 2), "FILE:3: not N-Quads", 0),
        (
            at("a", 1) + quad("a") + at("b", "2026-01-01T00:00:00Z"),
            "FILE:3: the timestamp is a date, but that at FILE:1 is a number",
            1,
        ),
        (at("a", "2026-02-30T00:00:00Z"), "FILE:1: there is no day 2026-02-30", 0),
        (at("a", 1).replace('"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"soon"'),
         'FILE:1: "soon" is not a timestamp', 0),
        (f"<e:a> {GENERATED} <e:now> .\n", "FILE:1: <e:now> is not a timestamp", 0),
        ("<e:s> <e:p> <e:o> .\n", "it has no named graphs", 0),
        (f"<e:a> {GENERATED} <<( <e:a> <e:b> <e:c> )>> .\n", "<<( <e:a> <e:b> ", 0),
        (at("a", 1) + quad("a") + "MESSAGE\n", "FILE:3: a message delimiter", 0),
    ],
)  # fmt: skip
def test_errors_name_file_and_line(tmp_path: Path, text: str, said: str, delivered: int) -> None:
    read = Reading(tmp_path, text)
    assert said in read.error
    assert len(read.events) == delivered
    again = Reading(tmp_path, text, on_error="skip")
    assert not again.error
    assert again.source.counters.skipped >= 1
    assert len(again.log) == again.source.counters.skipped
    assert said in again.log[0].replace(again.path, "FILE")


def test_skipping_goes_on_with_the_rest(tmp_path: Path) -> None:
    text = (
        at("a", 1) + quad("a") + "rubbish\n" + quad("a", '"kept"')
        + quad("b")
        + at("c", 3) + quad("c") + quad("a") * 3
        + at("d", 2) + quad("d")
        + at("f", 4) + quad("f")
    )  # fmt: skip
    read = Reading(tmp_path, text, on_error="skip")
    assert (read.names, read.sizes) == (["e:a", "e:c", "e:f"], [2, 1, 1])
    assert read.source.counters.skipped == 4


def test_skipping_in_trig(tmp_path: Path) -> None:
    text = (
        TRIG
        + ":e3 oops .\n"
        + TRIG.split(":e1", 1)[0]
        + (':e4 prov:generatedAtTime "2026-01-02"^^xsd:date . :e4 { :s :p 1 }\n')
    )
    read = Reading(tmp_path, text, "s.trig", on_error="skip")
    assert read.names == ["e:e1", "e:e2", "e:e4"]
    assert read.source.counters.skipped == 1
    assert "FILE:10: not TriG" in read.log[0].replace(read.path, "FILE")


def test_a_hint_where_the_time_is_inside(tmp_path: Path) -> None:
    inside = at("a", 1).replace(" .\n", " <e:a> .\n")
    assert "--time-predicate" in Reading(tmp_path, quad("a") + inside).error


def test_files_of_one_stream_are_read_in_order(tmp_path: Path) -> None:
    one = Reading(tmp_path, at("a", 1) + quad("a"), "1.nq")
    two = Reading(tmp_path, at("b", 1) + quad("b", "_:x"), "2.nq")
    one.source.files = [one.path, two.path]
    events = list(one.source)
    assert [event.ordinal for event in events] == [0, 1]
    assert str(events[1].facts[0][2]) == "_:s0e2b0"
    one.source.files = [one.path, one.path]
    with pytest.raises(Exception, match="already complete"):
        list(one.source)


def test_relative_iris_are_relative_to_the_file(tmp_path: Path) -> None:
    read = Reading(tmp_path, f"<a> {GENERATED} 1 .\n<a> {{ <s> <p> <#o> }}\n", "s.trig")
    base = (tmp_path / "s.trig").as_uri()
    assert read.names == [base.replace("s.trig", "a")]
    assert read.events[0].facts[0][2].value == base + "#o"


TWO = at("a", 1) + quad("a") + at("b", 2) + quad("b")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # A line that is plainly no part of the event before it: that event is whole.
        (TWO + "garbage\n" + at("c", 3) + quad("c"), ["e:a", "e:b"]),
        (TWO + at("c", 3).replace(" .", "") + quad("c"), ["e:a", "e:b"]),
        (TWO + at("c", 3)[:40], ["e:a", "e:b"]),
        # One that may be: the event is not half applied.
        (TWO + quad("b").replace("<e:o>", "<e o>") + at("c", 3) + quad("c"), ["e:a"]),
        (TWO + "garbage\n" + quad("b") + at("c", 3) + quad("c"), ["e:a"]),
        (TWO + quad("b")[:10], ["e:a"]),
        (TWO[:-5], ["e:a"]),
        # Without its timestamp an event is never whole.
        (quad("a") + at("a", 1) + quad("b") + "garbage\n" + at("b", 2), ["e:a"]),
    ],
)
def test_a_malformed_line_after_an_event(tmp_path: Path, text: str, names: list[str]) -> None:
    read = Reading(tmp_path, text)
    assert "not N-Quads" in read.error
    assert read.names == names
