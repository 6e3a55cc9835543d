"""Lines of JSON → rows: right values, fields that come later, shapes, and malformed lines."""

from __future__ import annotations

import json
import os
import re
import sys
from decimal import Decimal
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import pytest

from spaseq.errors import InputError, QuerySemanticError
from spaseq.io.losses import Loss
from spaseq.io.native._json_rows import MAX_FIELDS, JsonBlock, JsonRows
from spaseq.io.read_options import ReadOptions
from spaseq.io.rows import tables
from spaseq.io.rows.mapping import parsed
from spaseq.io.rows.source import RowSource
from spaseq.io.rows.suggest import suggest
from spaseq.rdf.bounded import MAX_NESTED_JSON

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "300"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
ONE = f"PREFIX : <{EX}> CONSTRUCT {{ :s :v ?v }} WHERE {{ }}"
OPTIONAL = f"PREFIX : <{EX}> CONSTRUCT {{ :s :v ?v }} WHERE {{ FILTER(BOUND(?v) || true) }}"


def values(text: str | bytes, *names: str) -> list[list[str | None]]:
    """The texts of terms by row, of input without malformed lines."""
    data = text.encode() if isinstance(text, str) else text
    block = JsonRows(names).read(data, 0, len(data))
    assert not block.problem
    return [list(row) for row in zip(*(block.values(i) for i in range(len(names))), strict=True)]


def value(text: str) -> str | None:
    """The text of the term of one value."""
    ((found,),) = values(f'{{"v": {text}}}', "v")
    return found


def typed(lexical: str, datatype: str) -> str:
    return f'"{lexical}"^^<{XSD}{datatype}>'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"a b"', '"a b"'),
        ('""', '""'),
        (r'"\"\\\/\b\f\n\r\t"', '""\\/\b\f\n\r\t"'),
        (r'"\u00e9\u20ac\ud83d\ude00\u0000"', '"é€😀\0"'),
        ('"é€😀"', '"é€😀"'),
        ("7", typed("7", "integer")),
        ("-0", typed("0", "integer")),
        ("9007199254740993", typed("9007199254740993", "integer")),
        ("123456789012345678901234567890", typed("123456789012345678901234567890", "integer")),
        ("-18446744073709551617", typed("-18446744073709551617", "integer")),
        ("20.5", typed("20.5", "decimal")),
        ("20.50", typed("20.5", "decimal")),
        ("20.0", typed("20", "decimal")),
        ("-0.0", typed("0", "decimal")),
        ("0.1234567890123456789012345", typed("0.1234567890123456789012345", "decimal")),
        ("1e3", typed("1000", "double")),
        ("-2.5E-7", typed("-0.00000025", "double")),
        ("1e400", typed("INF", "double")),
        ("NaN", typed("NaN", "double")),
        ("-NaN", typed("NaN", "double")),
        ("Infinity", typed("INF", "double")),
        ("-Inf", typed("-INF", "double")),
        ("true", typed("true", "boolean")),
        ("false", typed("false", "boolean")),
        ("null", None),
    ],
)
def test_values(text: str, expected: str | None) -> None:
    assert value(text) == expected


def test_rows() -> None:
    text = '\ufeff{"a": 1}\r\n\r\n \t\n{"b": 2} {"a": 3}\n{}\n{"a":{"b":4}}'
    one, two, three, four = (typed(n, "integer") for n in "1234")
    found = values(text, "a", "b", "a_b")
    assert found == [
        [one, None, None],
        [None, two, None],
        [three, None, None],
        [None, None, None],
        [None, None, four],
    ]


def test_names_of_fields() -> None:
    text = r'{"unit price": 1, "é": 2, "\u0061\u0062": 3, "x": {"y-z": {"": 4, "w": 5}}, "": 6}'
    names = ("unit_price", "é", "ab", "x_y_z_", "x_y_z_w", "_")
    assert values(text, *names) == [[typed(str(n), "integer") for n in range(1, 7)]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Traceback (most recent):", "not a JSON object: Traceback (most recent):"),
        ("5", "not a JSON object: 5"),
        ("[1]", "not a JSON object: [1]; a row is an object of its own line: jq -c '.[]' FILE "
         "writes a list so"),
        ('{"a": 1} x', "not a JSON object: x"),
        ('{"a": 1', "not JSON: the line is cut in the field a"),
        ('{"a": {"b": "c', "not JSON: the line is cut in the field a.b"),
        ('{"a": tru', "not JSON in the field a: a value is expected, not tru"),
        ('{"a": 1,}', "not JSON: the name of a field is expected, not }"),
        ('{a: 1}', "not JSON: the name of a field is expected, not a: 1}"),
        ('{"a" 1}', "not JSON in the field a: a colon is expected, not 1}"),
        ('{"a": [1 2]}',
         "not JSON in the field a: a comma or the end of the list is expected, not 2]}"),
        ('{"a": 01}',
         "not JSON in the field a: a comma or the end of the object is expected, not 1}"),
        ('{"a": 1.}', "not JSON in the field a: a digit is expected, not }"),
        ('{"a": 1e}', "not JSON in the field a: a digit is expected, not }"),
        ('{"a": -}', "not JSON in the field a: a digit is expected, not }"),
        ('{"a": [1,]}', "not JSON in the field a: a value is expected, not ]}"),
        ('{"a": "\\x"}',
         "not JSON in the field a: an escape such as \\n or \\u00e9 is expected, not \\x\"}"),
        ('{"a": "\\u12g4"}',
         "not JSON in the field a: an escape such as \\n or \\u00e9 is expected, not \\u12g4\"}"),
        ('{"a": "b\tc"}',
         "not JSON in the field a: no control character within a string is expected, not \tc\"}"),
        ('{"a": 1, "a": 2}', "the field a occurs twice"),
        ('{"a": nan}', "not JSON in the field a: a value is expected, not nan}"),
    ],
)  # fmt: skip
def test_malformed_lines(line: str, message: str) -> None:
    data = f'{{"a": 1}}\n{line}\n{{"a": 2}}\n'.encode()
    for names in (["a"], ["other", "a"], ["a", "a_b"]):
        rows = JsonRows(names)
        column = names.index("a")
        before = rows.read(data, 0, len(data))
        extra = 1 if line.startswith('{"a": 1} ') else 0  # the row before the rest of the line
        assert before.values(column) == [typed("1", "integer")] * (1 + extra)
        assert (before.problem, before.line) == (message, 2)
        after = rows.read(data, before.taken, len(data))
        assert (after.first, after.problem) == (3 + extra, "")
        assert after.values(column) == [typed("2", "integer")]


def test_lines_are_checked_whatever_is_read() -> None:
    for line in (b'{"x": [tru]}', b'{"x": "\\z"}', b'{"x": {"y": 1.}}', b'{"x": "\xff"}'):
        assert JsonRows(["a"]).read(line, 0, len(line)).problem


def test_bytes_that_are_not_utf_8() -> None:
    data = b'{"a": "\xe9"}'
    found = JsonRows(["a"]).read(data, 0, len(data))
    assert found.problem == "not UTF-8: byte 8 of the line is 0xe9"


def test_depth_is_bounded() -> None:
    def problem(depth: int, begin: str, end: str) -> str:
        data = ('{"a": ' + begin * (depth - 1) + end * (depth - 1) + "}").encode()
        return JsonRows(["b"]).read(data, 0, len(data)).problem

    assert problem(MAX_NESTED_JSON, "[", "]") == ""
    assert problem(MAX_NESTED_JSON + 1, "[", "]") == (
        "its JSON is nested more than 500 deep, in the field a"
    )
    assert "nested more than" in problem(200_000, '{"a":', "}")


def test_many_names_of_fields() -> None:
    """Names that are not read do not displace those that are, however many there are."""
    lines = [f'{{"x{i}": {i}, "x{i}y": {{"z": 1}}}}\n' for i in range(3 * MAX_FIELDS)]
    text = "".join([*lines, '{"late": 5}\n'])
    assert values(text, "late")[-1] == [typed("5", "integer")]
    signs = "".join(f'{{"a{chr(0x2000 + i)}b": {{"c": 1}}}}\n' for i in range(2 * MAX_FIELDS))
    found = JsonRows(["a_b_c"]).read(signs.encode(), 0, len(signs.encode()))
    assert "more than 4,096 fields" in found.problem or found.num_rows == 2 * MAX_FIELDS


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ' + "[" * 400_000,
        '{"a": ' + '{"a": ' * 80_000,
        '{"a": "' + "\\u00e9" * 80_000 + '"}',
        '{"a": ' + "1" * 400_000 + "}",
        '{"a": 1.' + "0" * 400_000 + "}",
        '{"a": 1' + "0" * 400_000 + "e5}",
        '{"a": [' + "1," * 200_000 + "1]}",
        "".join(f'{{"b{i}":1}}\n' for i in range(30_000)),
    ],
    ids=range(8),
)
def test_hostile_lines_cost_linear_time(text: str) -> None:
    data = text.encode()
    begun = process_time()
    JsonRows(["a"]).read(data, 0, len(data))
    assert process_time() - begun < 2


# ------------------------------------------------------------------ drawn


def drawn(draw: Random, depth: int = 0) -> Any:
    kinds = ["text", "integer", "fraction", "flag", "null"]
    kind = draw.choice(kinds + ["object", "list"] * (depth < 3))
    match kind:
        case "text":
            return "".join(draw.choice('abé€😀"\\/\n\t\x00 ') for _ in range(draw.randrange(12)))
        case "integer":
            return draw.choice((1, -1)) * draw.randrange(10 ** draw.randrange(1, 40))
        case "fraction":
            return Decimal(draw.randrange(-(10**9), 10**9)).scaleb(-draw.randrange(1, 12))
        case "flag":
            return draw.random() < 0.5
        case "null":
            return None
        case "list":
            return [drawn(draw, depth + 1) for _ in range(draw.randrange(4))]
        case _:
            return fields(draw, depth + 1)


def fields(draw: Random, depth: int) -> dict[str, Any]:
    names = draw.sample(("a", "b", "c", "d e", "é"), draw.randrange(5))
    return {name: drawn(draw, depth) for name in names}


def written(found: Any, draw: Random) -> str:
    """The value as JSON, with drawn blanks and escapes."""
    blank = draw.choice(("", " ", "\t", " \r"))
    if isinstance(found, dict):
        inner = (f"{blank}{written(n, draw)}{blank}:{written(v, draw)}" for n, v in found.items())
        return f"{{{','.join(inner)}{blank}}}"
    if isinstance(found, list):
        return f"[{','.join(blank + written(v, draw) for v in found)}{blank}]"
    if isinstance(found, Decimal):
        return f"{found:f}" if "." in f"{found:f}" else f"{found:f}.0"
    return blank + json.dumps(found, ensure_ascii=draw.random() < 0.5) + blank


def expected(found: Any) -> str | None:
    match found:
        case None | dict() | list():
            return None
        case bool():
            return typed(str(found).lower(), "boolean")
        case int():
            return typed(str(found), "integer")
        case Decimal():
            text = f"{found:f}"
            text = text.rstrip("0").rstrip(".") if "." in text else text
            return typed("0" if text in ("-0", "") else text, "decimal")
        case _:
            return f'"{found}"'


def at(row: Any, *path: str) -> Any:
    for name in path:
        row = row.get(name) if isinstance(row, dict) else None
    return row


PATHS = (("a",), ("b", "c"), ("c", "d e"), ("é", "a", "b"), ("b",))


def test_drawn_rows_in_drawn_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The values are those of Python's parser, wherever blocks end."""
    draw = Random(SEED)
    for _ in range(EXAMPLES // 10):
        rows = [fields(draw, 0) for _ in range(draw.randrange(1, 40))]
        text = "\n".join(written(row, draw) for row in rows) + draw.choice(("", "\n"))
        path = tmp_path / "rows.jsonl"
        path.write_text(text, "utf-8")
        monkeypatch.setattr(tables, "BLOCK", draw.randrange(1, 200))
        monkeypatch.setattr(tables, "JSON_PIECE", draw.randrange(1, 200))
        monkeypatch.setattr(tables, "JSON_HEAD", draw.randrange(1, 2000))
        names = ["_".join(path).replace(" ", "_") for path in PATHS]
        table = tables.open_table(str(path), None, lambda message, line: pytest.fail(message))
        columns = table.columns(frozenset(), frozenset(names))
        assert columns is not None
        wanted = [next(c for c in columns if c.variable == name) for name in names]
        found: list[list[str | None]] = []
        for first, block in table.batches(wanted):
            assert isinstance(block, JsonBlock)
            assert first == len(found) + 1
            cells = [block.values(i) for i in range(len(names))]
            found += [list(row) for row in zip(*cells, strict=True)]
        table.close()
        assert found == [[expected(at(row, *path)) for path in PATHS] for row in rows]


# ------------------------------------------------------------------ a table


def read(
    content: str, mapping: str = ONE, log: list[str] | None = None, **options: Any
) -> tuple[list[str], list[Loss]]:
    """The events of a file as `time value …`, before the error that ends it; and what is lost."""
    options.setdefault("time_column", "t")
    source = RowSource(
        EX,
        [content],
        ReadOptions(**options),
        mapping=parsed(mapping),
        log=(lambda text: None) if log is None else log.append,
    )
    found = []
    try:
        for event in source:
            shown = (str(fact[2]).partition("^^")[0] for fact in event.facts)
            found.append(" ".join((event.time.term.value, *shown)))
    except InputError as error:
        found.append(str(error).replace(content, "FILE"))
    return found, source.counters.losses()


def file(folder: Path, text: str | bytes) -> str:
    path = folder / "rows.jsonl"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


@pytest.mark.parametrize("workers", [1, 2])
def test_fields_that_come_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr("spaseq.io.rows.source._LONG_BYTES", 0)
    monkeypatch.setattr(tables, "JSON_HEAD", 1000)
    monkeypatch.setattr(tables, "JSON_PIECE", 300)
    monkeypatch.setattr(tables, "BLOCK", 500)
    rows = [{"t": i, "before": None, "x": 1} for i in range(200)]
    rows[150]["v"] = 20.5  # type: ignore[assignment]
    rows[170]["before"] = {"v": "was"}  # type: ignore[assignment]
    path = file(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    mapping = (
        f"PREFIX : <{EX}> CONSTRUCT {{ :s :v ?w ; :b ?before_v }} "
        "WHERE { BIND(COALESCE(?v, ?before_v) AS ?w) }"
    )
    found, _ = read(path, mapping, workers=workers)
    assert [event for event in found if " " in event] == ['150 "20.5"', '170 "was" "was"']
    # A name that is neither a field nor optional is a mistake in the mapping.
    with pytest.raises(QuerySemanticError, match=r"\?w is not a column"):
        read(path, ONE.replace("?v", "?w"))


def test_shapes(tmp_path: Path) -> None:
    rows = ['1, "v": 7', '2, "v": {"w": 1}', '3, "v": [1, 2]', '4, "v": "\\ud800"', '5, "v": "x"',
            '6, "d": "open"', '7, "d": {"c": 20.5}', '8, "d": null']  # fmt: skip
    path = file(tmp_path, "".join(f'{{"t": {row}}}\n' for row in rows))
    mapping = f"PREFIX : <{EX}> CONSTRUCT {{ :s :v ?v ; :c ?d_c }} WHERE {{ }}"
    found, losses = read(path, mapping)
    assert found == ['1 "7"', "2", "3", "4", '5 "x"', "6", '7 "20.5"', "8"]
    assert [str(loss).replace(path, "FILE") for loss in losses] == [
        "the field v has no usable value in 3 of 8 rows, first in FILE:2: an object is not one "
        "value, so ?v is unbound",
        'the field d has no usable value in 1 of 8 rows, first in FILE:6: "open" is not an object, '
        "so ?d_c is unbound",
        "5 of 8 rows gave no triple, first in FILE:2: no variable of the template has a value",
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_malformed_lines_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr("spaseq.io.rows.source._LONG_BYTES", 0)
    text = '{"t": 1, "v": 1}\n\n{"t": 2, "v": 2}\noops\n{"t": 3, "v": 3}\n{"t": 4, "v": "5'
    path = file(tmp_path, text)
    oops = "FILE:4: malformed: not a JSON object: oops"
    assert read(path, workers=workers)[0] == ['1 "1"', '2 "2"', oops]
    log: list[str] = []
    found, _ = read(path, log=log, on_error="skip", workers=workers)
    assert found == ['1 "1"', '2 "2"', '3 "3"']
    assert [line.replace(path, "FILE") for line in log] == [
        f"skipped: {oops}",
        "skipped: FILE:6: malformed: not JSON: the last line is cut in the field v",
    ]
    numbered = ONE.replace("?v }", "?_row }")
    found, _ = read(path, numbered, on_error="skip", workers=workers)
    assert found == ['1 "1"', '2 "2"', '3 "4"']  # malformed rows count, blank lines do not


def test_messages_name_lines(tmp_path: Path) -> None:
    path = file(tmp_path, '\n{"t": 2, "v": 1}\n\n{"v": 2}\n')
    found, _ = read(path)
    assert found[1].startswith("FILE:4: a row without a time")


def test_a_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_LINE_BYTES", 1 << 21)
    monkeypatch.setattr(tables, "JSON_HEAD", 1 << 16)
    path = file(tmp_path, '{"t": 1, "v": "' + "x" * (1 << 20) + '"}\n')
    ((event,), _) = read(path)
    assert len(event) > 1 << 20
    path = file(tmp_path, '{"t": 1, "v": "' + "x" * (1 << 23) + '"}\n')
    assert read(path, OPTIONAL)[0] == ["FILE:1: a line of more than 2 MiB"]


def test_a_pipe_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is an event before the next one is written."""
    receiving, sending = os.pipe()
    with os.fdopen(receiving, "rb") as file, os.fdopen(sending, "wb", buffering=0) as pipe:

        class Input:
            buffer = file

        monkeypatch.setattr(sys, "stdin", Input)
        pipe.write(b'{"t": 1, "v": 1}\n{"t": 2, "v": ')
        source = RowSource(
            EX, ["-"], ReadOptions(time_column="t", syntax="jsonl"), mapping=parsed(ONE)
        )
        events = iter(source)
        assert next(events).time.term.value == "1"
        pipe.write(b"2}\n")
        assert next(events).time.term.value == "2"
        pipe.close()
        assert list(events) == []


def test_lists_of_objects_are_named(tmp_path: Path) -> None:
    for text in ('[{"t": 1, "v": 2}]\n', '[\n  {"t": 1, "v": 2}\n]\n'):
        path = tmp_path / "rows.json"
        path.write_text(text)
        wanted = "jq -c '.[]' FILE writes a list so"
        ((message,), _) = read(str(path))
        assert wanted in message
        with pytest.raises(InputError, match=re.escape(wanted)):
            suggest(str(path))


def test_suggestions(tmp_path: Path) -> None:
    rows = [{"at": f"2026-01-0{i}T09:00:00Z", "id": i, "v": i + 0.5, "l": [1]} for i in (1, 2, 3)]
    text = suggest(file(tmp_path, "".join(json.dumps(row) + "\n" for row in rows)))
    assert "BIND(?at AS ?_time)" in text
    assert ":v ?v ." in text
    assert "# The column 'l' holds lists: omitted." in text
