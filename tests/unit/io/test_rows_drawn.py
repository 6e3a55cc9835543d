"""Drawn mappings over drawn tables make the events that a CONSTRUCT of pyoxigraph makes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest

from spaseq.io.read_options import ReadOptions
from spaseq.io.rows.mapping import parsed
from spaseq.io.rows.source import RowSource
from spaseq.rdf.native._terms import Dictionary, Relevance

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "300"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
XSD = "http://www.w3.org/2001/XMLSchema#"
EX = "http://example.org/"
STREAM = EX + "stream"
STORE = ox.Store()
PREFIXES = f"PREFIX : <{EX}> PREFIX xsd: <{XSD}>\n"


def literal(text: str, datatype: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + datatype))


def canonical(text: str, datatype: str) -> ox.Literal:
    """The literal that a cast of pyoxigraph makes."""
    (row,) = STORE.query(f'SELECT (<{XSD}{datatype}>("{text}") AS ?v) {{}}')
    return row["v"]


# ------------------------------------------------------------------ columns


def real(value: float, name: str) -> ox.Literal:
    if math.isnan(value):
        return literal("NaN", name)
    if math.isinf(value):
        return literal("INF" if value > 0 else "-INF", name)
    return canonical(repr(value), name)


def fraction(ticks: int, per_second: int) -> str:
    digits = str(ticks).rjust(len(str(per_second)) - 1, "0").rstrip("0")
    return f".{digits}" if digits else ""


def date_time(ticks: int, per_second: int, zoned: bool) -> ox.Literal:
    seconds, rest = divmod(ticks, per_second)
    text = (datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat()
    return literal(text + fraction(rest, per_second) + "Z" * zoned, "dateTime")


@dataclass(frozen=True)
class Sort:
    """A type of columns: how values are drawn, and what their terms are."""

    type: pa.DataType
    draw: Callable[[Random], Any]
    term: Callable[[Any], ox.Literal]


TEXTS = (
    *("", "a", "abc", "12", "-7", "1.50", "x y", 'say "hi"\\', "ä\n€", "true", "1e3"),
    *("2026-01-05", "2026-01-05T09:00:00Z", "http://a.example/b"),
)
REALS = (
    *(0.0, -0.0, 1.0, 0.1, -2.5, 1e10, 1e-7, 123456789.125, 1 / 3, 2**53 + 2.0, 100.25),
    *(math.inf, -math.inf, math.nan),
)
EPOCH = date(1970, 1, 1)


def text(value: str) -> ox.Literal:
    return ox.Literal(value)


def whole(value: int) -> ox.Literal:
    return literal(str(value), "integer")


def exact(value: Decimal) -> ox.Literal:
    shown = format(value, "f")
    return literal(shown.rstrip("0").rstrip(".") if "." in shown else shown, "decimal")


def integers(bits: int, signed: bool) -> Callable[[Random], int]:
    low = -(1 << bits - 1) if signed else 0
    high = (1 << bits - signed) - 1

    def drawn(chance: Random) -> int:
        near = chance.choice((low, high, 0, 1, 100, -(1 << 27), 1 << 27))
        return chance.choice((min(max(near, low), high), chance.randint(low, high)))

    return drawn


def decimals(places: int) -> Callable[[Random], Decimal]:
    return lambda chance: Decimal(
        chance.choice((0, 5, 100, 12345, -9, -(10**17), 10**17 + 1))
    ).scaleb(-places)


TICKS = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}


def stamps(unit: str, zone: str | None) -> Sort:
    per_second = TICKS[unit]
    return Sort(
        pa.timestamp(unit, zone),
        lambda chance: chance.choice((0, -1, chance.randint(-(10**9), 4 * 10**9) * per_second + 1)),
        lambda ticks: date_time(ticks, per_second, zone is not None),
    )


def time_of_day(unit: str, kind: pa.DataType) -> Sort:
    per_second = TICKS[unit]

    def term(ticks: int) -> ox.Literal:
        seconds, rest = divmod(ticks, per_second)
        shown = (datetime(1970, 1, 1) + timedelta(seconds=seconds)).time().isoformat()
        return literal(shown + fraction(rest, per_second), "time")

    return Sort(kind, lambda chance: chance.randrange(86400 * per_second), term)


def _float_term(value: float) -> ox.Literal:
    return real(value, "float")


def _boolean_term(value: bool) -> ox.Literal:
    return literal("true" if value else "false", "boolean")


def _hex_term(value: bytes) -> ox.Literal:
    return literal(value.hex().upper(), "hexBinary")


SORTS: dict[str, Sort] = {
    "int8": Sort(pa.int8(), integers(8, True), whole),
    "int64": Sort(pa.int64(), integers(50, True), whole),
    "uint16": Sort(pa.uint16(), integers(16, False), whole),
    "uint64": Sort(pa.uint64(), integers(50, False), whole),
    "double": Sort(pa.float64(), lambda c: c.choice(REALS), lambda v: real(v, "double")),
    "float": Sort(
        pa.float32(), lambda c: c.choice((0.5, -3.0, 4096.0, math.nan, 0.25)), _float_term
    ),
    "decimal": Sort(pa.decimal128(20, 3), decimals(3), exact),
    "whole decimal": Sort(pa.decimal128(38, 0), decimals(0), exact),
    "fine decimal": Sort(pa.decimal128(38, 20), decimals(18), exact),
    "wide decimal": Sort(pa.decimal256(60, 2), decimals(2), exact),
    "bool": Sort(
        pa.bool_(), lambda c: c.random() < 0.5, _boolean_term
    ),
    "string": Sort(pa.string(), lambda c: c.choice(TEXTS), text),
    "large string": Sort(pa.large_string(), lambda c: c.choice(TEXTS), text),
    "string view": Sort(pa.string_view(), lambda c: c.choice(TEXTS), text),
    "dictionary": Sort(pa.dictionary(pa.int8(), pa.string()), lambda c: c.choice(TEXTS), text),
    "date": Sort(
        pa.date32(),
        lambda c: EPOCH + timedelta(days=c.randint(-700_000, 2_000_000)),
        lambda v: literal(v.isoformat(), "date"),
    ),
    "binary": Sort(
        pa.binary(), lambda c: c.randbytes(c.randrange(4)), _hex_term
    ),
    "duration": Sort(
        pa.duration("ms"),
        lambda c: c.choice((0, 1500, -90_061_001, 86_400_000)),
        lambda v: canonical(_seconds(v), "dayTimeDuration"),
    ),
    "null": Sort(pa.null(), lambda c: None, text),
    **{f"timestamp {u} {z}": stamps(u, z) for u in TICKS for z in (None, "UTC", "Europe/Paris")},
    "time s": time_of_day("s", pa.time32("s")),
    "time us": time_of_day("us", pa.time64("us")),
    "time ns": time_of_day("ns", pa.time64("ns")),
}  # fmt: skip


def _seconds(millis: int) -> str:
    return f"{'-' * (millis < 0)}PT{abs(millis) / 1000:.3f}S"


@dataclass(frozen=True)
class Table:
    batch: pa.RecordBatch
    terms: list[dict[str, ox.Literal]]
    paths: list[str]


def array(sort: Sort, values: Sequence[Any], chance: Random) -> pa.Array:
    """The values, half of the time as the middle of a longer array, so that it has an offset."""
    around = [None] * chance.randrange(2)
    padded = [*around, *values, *around]
    is_ = pa.types
    if is_.is_timestamp(sort.type) or is_.is_time(sort.type) or is_.is_duration(sort.type):
        width = pa.int32() if sort.type.bit_width == 32 else pa.int64()
        made = pa.array(padded, width).cast(sort.type)
    elif is_.is_dictionary(sort.type):
        made = pa.array(padded, pa.string()).dictionary_encode().cast(sort.type)
    else:
        made = pa.array(padded, sort.type)
    return made.slice(len(around), len(values))


def table(chance: Random) -> Table:
    rows = chance.randrange(1, 30)
    arrays: dict[str, pa.Array] = {}
    paths = []
    terms: list[dict[str, ox.Literal]] = [{"_row": whole(i + 1)} for i in range(rows)]
    for name in "abcd":
        sort = SORTS[chance.choice(list(SORTS))]
        values = [sort.draw(chance) if chance.random() < 0.8 else None for _ in range(rows)]
        column = array(sort, values, chance)
        path = name
        if chance.random() < 0.3:
            present = [chance.random() < 0.8 for _ in range(rows)]
            mask = pa.array([not each for each in present])
            column = pa.StructArray.from_arrays([column], ["in.ner"], mask=mask)
            values = [v if p else None for v, p in zip(values, present, strict=True)]
            path = f"{name}_in_ner"
        arrays[name] = column
        paths.append(path)
        for row, value in zip(terms, values, strict=True):
            if value is not None:
                row[path] = sort.term(value)
    arrays["at"] = pa.array(range(rows))
    return Table(pa.record_batch(arrays), terms, paths)


# ------------------------------------------------------------------ mappings

EXPRESSIONS = (
    'IRI(CONCAT("http://example.org/", STR(?{0})))',
    'IRI(CONCAT("http://example.org/", ENCODE_FOR_URI(STR(?{0})), "/", STR(?_row)))',
    "IRI(?{0})",
    "xsd:decimal(?{0})",
    "xsd:integer(?{0})",
    "xsd:double(?{0})",
    "xsd:dateTime(?{0})",
    "xsd:boolean(?{0})",
    "STRDT(STR(?{0}), :code)",
    'STRLANG(STR(?{0}), "en")',
    "?{0} + ?{1}",
    "?{0} * 2 - ?_row",
    "COALESCE(?{0}, ?{1}, 7)",
    "IF(BOUND(?{0}), ?{1}, ?_row)",
    "STR(?{0})",
    "DATATYPE(?{0})",
    "CONCAT(STR(?{0}), STR(?{1}), STR(?{2}), STR(?{3}), STR(?_row))",
    'REPLACE(STR(?{0}), "a", "b")',
    "UCASE(STR(?{0}))",
    "STRLEN(STR(?{0}))",
    "YEAR(?{0})",
    "MD5(STR(?{0}))",
    "?{0}",
)
CONDITIONS = (
    "?{0} > ?{1}",
    "BOUND(?{0})",
    "?_row != 3",
    "?{0} = ?{1} || !BOUND(?{1})",
    'CONTAINS(STR(?{0}), "1")',
    'REPLACE(STR(?{0}), "a", "") = STR(?{0})',
    "?x0",
)
SUBJECTS = ("?x0", "?x1", ":s", "_:n", "_:m", "?{0}", "[ :inner ?{1} ]")
PREDICATES = (":p", ":q", ":r", "a", "?x0")
OBJECTS = ("?x0", "?x1", "?{0}", "?{1}", "?_row", ":o", '"text"@en', "5", "_:n", "[ :deep ?{0} ]")


def mapping(chance: Random, names: Sequence[str]) -> tuple[str, str]:
    """The template and the group of a mapping over some columns."""

    def filled(form: str) -> str:
        return form.format(*chance.choices(names, k=4))

    binds = [f"BIND({filled(chance.choice(EXPRESSIONS))} AS ?x{i})" for i in range(3)]
    filters = [f"FILTER({filled(chance.choice(CONDITIONS))})" for _ in range(chance.randrange(3))]
    parts = list(binds)
    for each in filters:
        parts.insert(chance.randrange(len(parts) + 1), each)
    triples = []
    for _ in range(chance.randrange(1, 5)):
        forms = (chance.choice(each) for each in (SUBJECTS, PREDICATES, OBJECTS))
        triples.append(" ".join(map(filled, forms)) + " .")
    return " ".join(triples), " ".join(parts)


def reference(template: str, group: str, row: dict[str, ox.Literal]) -> ox.Dataset | None:
    """What pyoxigraph constructs of a row; None if a filter drops it."""
    names = " ".join(f"?{name}" for name in row)
    values = f"VALUES ({names}) {{ ({' '.join(map(str, row.values()))}) }}"
    if not STORE.query(f"{PREFIXES} ASK {{ {values} {group} }}"):
        return None
    triples = STORE.query(f"{PREFIXES} CONSTRUCT {{ {template} }} WHERE {{ {values} {group} }}")
    return dataset(triples)


def dataset(triples: Any) -> ox.Dataset:
    made = ox.Dataset(ox.Quad(*triple) for triple in triples)
    made.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return made


def events(batch: pa.RecordBatch, text: str, relevance: Relevance | None = None) -> list[Any]:
    options = ReadOptions(time_column="at")
    source = RowSource(STREAM, [batch], options, mapping=parsed(text), relevance=relevance)
    return list(source)


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_drawn_mappings(seed: int) -> None:
    chance = Random(seed)
    drawn = table(chance)
    template, group = mapping(chance, drawn.paths)
    made = events(drawn.batch, f"{PREFIXES} CONSTRUCT {{ {template} }} WHERE {{ {group} }}")
    expected = {}
    for number, row in enumerate(drawn.terms):
        found = reference(template, group, row)
        if found is not None:
            expected[number] = found
    assert [event.time.micros // 10**6 for event in made] == list(expected), (template, group)
    nodes: set[str] = set()
    for event, wanted in zip(made, expected.values(), strict=True):
        assert set(dataset(event.facts)) == set(wanted), (template, group)
        own = {str(t) for fact in event.facts for t in fact if isinstance(t, ox.BlankNode)}
        assert not own & nodes  # blank nodes are fresh for each event
        nodes |= own


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES // 3))
def test_what_no_query_uses_is_left_out(seed: int) -> None:
    """With fewer predicates of use the events are the same, less the triples of the others."""
    chance = Random(seed)
    drawn = table(chance)
    template, group = mapping(chance, drawn.paths)
    text = f"{PREFIXES} CONSTRUCT {{ {template} }} WHERE {{ {group} }}"
    uses = {(ox.NamedNode(EX + "p"), None), (ox.NamedNode(EX + "q"), ox.NamedNode(EX + "o"))}
    everything = events(drawn.batch, text)
    pruned = events(drawn.batch, text, Relevance(Dictionary(), uses))
    assert len(everything) == len(pruned)
    for whole_event, event in zip(everything, pruned, strict=True):
        kept = [
            fact
            for fact in whole_event.facts
            if (fact[1], None) in uses or (fact[1], fact[2]) in uses
        ]
        assert set(dataset(kept)) == set(dataset(event.facts)), text
        assert (event.size == 0) == (len(whole_event.facts) == 0), text


@pytest.mark.parametrize("name", SORTS)
def test_every_sort_of_column(name: str) -> None:
    chance = Random(SEED)
    sort = SORTS[name]
    values = [sort.draw(chance) if i % 7 else None for i in range(60)]
    batch = pa.record_batch({"v": array(sort, values, chance), "at": pa.array(range(60))})
    made = events(batch, f"{PREFIXES} CONSTRUCT {{ :s :p ?v }} WHERE {{ }}")
    for event, value in zip(made, values, strict=True):
        found = [fact[2] for fact in event.facts]
        assert found == ([] if value is None else [sort.term(value)])


@pytest.mark.parametrize(
    ("values", "term"),
    [
        (pa.array([-(2**63), 2**63 - 1]), whole),
        (pa.array([2**63, 2**64 - 1], pa.uint64()), whole),
        (pa.array([Decimal(-(10**38) + 1), Decimal(10**38 - 1)], pa.decimal128(38)), exact),
        (pa.array([Decimal(5).scaleb(-38), Decimal("0.9")], pa.decimal256(76, 38)), exact),
        (pa.array([Decimal("1E+3"), Decimal("-5E+3")], pa.decimal128(3, -3)), exact),
        (pa.array([1e300, -5e-324, 1.7976931348623157e308]), lambda v: real(v, "double")),
    ],
)
def test_values_that_the_reference_does_not_compute_with(
    values: pa.Array, term: Callable[[Any], ox.Literal]
) -> None:
    batch = pa.record_batch({"v": values, "at": pa.array(range(len(values)))})
    made = events(batch, f"{PREFIXES} CONSTRUCT {{ :s :p ?v }} WHERE {{ }}")
    assert [fact[2] for each in made for fact in each.facts] == list(map(term, values.to_pylist()))


def test_times_of_the_years_beyond_four_digits() -> None:
    days = [-800_000, -719_529, -719_528, 2_932_897]
    batch = pa.record_batch({"v": pa.array(days, pa.int32()).cast(pa.date32()), "at": range(4)})
    made = events(batch, f"{PREFIXES} CONSTRUCT {{ :s :p ?v }} WHERE {{ }}")
    shown = [event.facts[0][2].value for event in made]
    assert shown == ["-0221-09-04", "-0001-12-31", "0000-01-01", "10000-01-01"]


def test_times_are_aware_of_their_zone() -> None:
    moment = datetime(2026, 1, 5, 10, tzinfo=UTC)
    batch = pa.record_batch({"v": pa.array([moment], pa.timestamp("s", "Asia/Tokyo"))})
    source = RowSource(
        STREAM, [batch], ReadOptions(time_column="v"), mapping=parsed("CONSTRUCT { } WHERE { }")
    )
    (event,) = source
    assert event.time.term.value == "2026-01-05T10:00:00Z"
    assert time(10) == moment.time()
