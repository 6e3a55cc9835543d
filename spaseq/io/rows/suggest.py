"""The columns of a table → the text of a first mapping, which runs as it is.

The mapping has one subject per row, with an IRI made of a column of identifiers or of the number of
the row, one predicate per column, and a time. The first rows decide the casts of columns of
strings, as in CSV, and the choice of the columns of identifiers and of times.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from datetime import date
from pathlib import PurePath
from typing import Any

from spaseq.io.rows.columns import Column
from spaseq.io.rows.mapping import GRAPH, ROW, TIME
from spaseq.io.rows.tables import open_table, values_at

SAMPLE = 10_000
"""The most rows that are examined,"""
SAMPLE_FIELDS = 256
"""the most fields of lines of JSON,"""
SAMPLE_CELLS = 1 << 21
"""and the most values: of many columns, fewer rows are."""

_NAMESPACE = "http://example.org/"
_CASTS: Sequence[tuple[str, re.Pattern[str]]] = (
    ("integer", re.compile(r"-?(?:0|[1-9][0-9]{0,17})")),
    ("decimal", re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+|-?(?:0|[1-9][0-9]{0,17})")),
    ("double", re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+|-?[0-9]+\.[0-9]+")),
    ("boolean", re.compile(r"true|false")),
    ("date", re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")),
    (
        "dateTime",
        re.compile(
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
            r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
        ),
    ),
)
"""Datatype → the strings that are cast to it; numbers with leading zeros remain strings."""
_SEPARATED: Sequence[tuple[re.Pattern[str], str]] = (
    (
        re.compile(r"-?(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.[0-9]+)?"),
        'xsd:decimal(REPLACE({}, ",", ""))',
    ),
)
"""Forms of numbers with separators of thousands → the cast of a column of such numbers."""
_DECIMAL_COMMAS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"-?(?:0|[1-9][0-9]*)(?:,[0-9]+)?"), 'xsd:decimal(REPLACE({}, ",", "."))'),
    (
        re.compile(r"-?(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:\.[0-9]{3})+)(?:,[0-9]+)?"),
        'xsd:decimal(REPLACE(REPLACE({}, "[.]", ""), ",", "."))',
    ),
)
"""The same in files with decimal commas, whose cells are separated by semicolons."""
_DECIMAL_POINT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_GROUPED = re.compile(r"-?[1-9][0-9]{0,2}(?:[.,][0-9]{3})+")
"""Numbers whose points or commas may separate thousands: `1.200`."""
_DAY, _MONTH = "(?:0[1-9]|[12][0-9]|3[01])", "(?:0[1-9]|1[0-2])"
_TIMES: Sequence[tuple[re.Pattern[str], str]] = (
    (
        re.compile(
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
            r"(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
        ),
        "{}",
    ),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}"), 'CONCAT({}, ":00")'),
    (
        re.compile(r"[0-9]{2}\.[0-9]{2}\.[0-9]{4}"),
        'REPLACE({}, "(..)[.](..)[.](....)", "$3-$2-$1")',
    ),
    (
        re.compile(r"[0-9]{2}\.[0-9]{2}\.[0-9]{4} [0-9]{2}:[0-9]{2}"),
        'REPLACE({}, "(..)[.](..)[.](....) (.*)", "$3-$2-$1T$4:00")',
    ),
    (
        re.compile(r"[0-9]{2}\.[0-9]{2}\.[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}"),
        'REPLACE({}, "(..)[.](..)[.](....) (.*)", "$3-$2-$1T$4")',
    ),
    (re.compile(f"{_DAY}/{_MONTH}/[0-9]{{4}}"), 'REPLACE({}, "(..)/(..)/(....)", "$3-$2-$1")'),
    (re.compile(f"{_MONTH}/{_DAY}/[0-9]{{4}}"), 'REPLACE({}, "(..)/(..)/(....)", "$3-$1-$2")'),
    (
        re.compile(f"{_DAY}/{_MONTH}/[0-9]{{4}} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}"),
        'REPLACE({}, "(..)/(..)/(....) (.*)", "$3-$2-$1T$4")',
    ),
    (
        re.compile(f"{_MONTH}/{_DAY}/[0-9]{{4}} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}"),
        'REPLACE({}, "(..)/(..)/(....) (.*)", "$3-$1-$2T$4")',
    ),
)
"""Forms of times → the expression that makes a timestamp of a column."""
_TIME_NAMES = re.compile(
    r"(?:.*_)?(?:time|timestamp|datetime|date|ts|epoch)|when|(?:.*_)?(?:created|updated|occurred)(?:_at)?",
    re.IGNORECASE,
)
_ID_NAMES = re.compile(r"(?:.*[_.])?(?:id|uuid|guid|key)", re.IGNORECASE)
_LEAST_EPOCH = {"s": 10**8, "ms": 10**11, "us": 10**14}
"""Unit → a number of units that is a time in 1973."""


def suggest(path: str, format_: str | None = None) -> str:
    """The text of a mapping for the table of a file.

    Raises:
        InputError: if the file cannot be read.
    """
    table = open_table(path, format_, lambda message, row: None)
    try:
        columns = table.columns() or ()
        values: dict[Column, list[Any]] = {column: [] for column in columns}
        most, rows = min(SAMPLE, SAMPLE_CELLS // max(len(columns), 1)), 0
        # Looking for a field of JSON takes time for each name; its values have types without casts.
        sampled = columns[:SAMPLE_FIELDS] if table.unit == "line" else columns
        for _, sample in table.batches(sampled) if sampled else ():
            for index, column in enumerate(sampled):
                if not column.unsupported:
                    values[column] += values_at(sample, index, column, most - rows)
            rows += sample.num_rows
            if rows >= most:
                break
    finally:
        table.close()
    comma = getattr(table, "delimiter", "") == ";"
    counts = Counter(column.variable for column in columns)
    shared = {variable for variable, count in counts.items() if count > 1}
    header = [column.name for column in columns] if hasattr(table, "delimiter") else []
    return "\n".join(_Suggestion(path, values, shared, comma, header).lines()) + "\n"


class _Suggestion:
    """The lines of a mapping.

    Args:
        path: The file, whose name becomes the class of the rows.
        values: The columns, with the values of the first rows.
        shared: The variables of more than one column.
        semicolons: Whether semicolons separate the cells, so that numbers may have a decimal comma.
        header: The first line of a text file.
    """

    def __init__(
        self,
        path: str,
        values: dict[Column, list[Any]],
        shared: Set[str],
        semicolons: bool,
        header: Sequence[str],
    ):
        self._all = values
        self._header = header
        variables = [column.variable for column in values]
        self._usable = [
            column for column in values if not column.unsupported and column.variable not in shared
        ]
        self._known = {name: [v for v in found if v is not None] for name, found in values.items()}
        self._may_have_commas = semicolons and not any(map(self._has_points, values))
        """Whether a comma begins the decimals of a number: no column refutes it."""
        self._has_commas = self._may_have_commas and any(map(self._shows_commas, values))
        """Whether a column also shows it."""
        self._numbers = _DECIMAL_COMMAS if self._may_have_commas else _SEPARATED
        self._taken = {ROW, TIME, GRAPH, *variables}
        stem = PurePath(path).name.partition(".")[0] or "rows"
        self._kind = "".join(part.capitalize() for part in re.findall(r"[^\W_]+", stem)) or "Rows"
        if re.search(r"[^sui]s$", self._kind):
            self._kind = self._kind[:-1]

    def lines(self) -> Iterator[str]:
        """The mapping, line by line."""
        time = self._time()
        subject = self._new(self._kind.lower())
        binds = [self._subject(subject)]
        objects = []
        for column in self._usable:
            value = f"?{column.variable}"
            cast = self._cast(column)
            if cast and column is not time:
                value = f"?{self._new(column.variable + '_value')}"
                binds.append(f"  BIND({cast.format(f'?{column.variable}')} AS {value})")
            if column is not time:
                objects.append(f"{_predicate(column.variable)} {value}")
        yield f"PREFIX : <{_NAMESPACE}>"
        if any("xsd:" in bind for bind in binds):
            yield "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
        yield "CONSTRUCT {"
        rest = [f"a :{self._kind}", *objects]
        for i, part in enumerate(rest):
            start = f"  ?{subject} " if i == 0 else "    "
            yield start + part + (" ." if i + 1 == len(rest) else " ;")
        yield "}"
        yield "WHERE {"
        if self._is_without_names():
            yield "  # The first line must name the columns, but has values: add names above it."
        yield from binds
        for column in self._usable if self._may_have_commas and not self._has_commas else ():
            if self._is_grouped(column):
                value = next(v for v in self._known[column] if "." in v)
                expression = _DECIMAL_COMMAS[-1][1].format(f"?{column.variable}")
                yield f"  # {value!r} in ?{column.variable} is read with a decimal point. If points"
                yield f"  # separate thousands, use {expression}."
        if time is not None:
            unit = self._unit(time)
            if unit not in ("", "s"):
                yield f"  # ?{time.variable} counts units of {unit}: use --time-unit {unit}"
            expression = (self._time_form(time) or "{}").format(f"?{time.variable}")
            if "/" in expression:
                order = "day/month" if "$3-$2-$1" in expression else "month/day"
                yield f"  # ?{time.variable} is read as {order}/year."
            yield f"  BIND({expression} AS ?{TIME})"
        else:
            yield from self._no_time()
        usable = set(self._usable)
        for column in self._all:
            if column.unsupported:
                yield f"  # The column {column.name!r} holds {column.unsupported}: omitted."
            elif column not in usable:
                yield f"  # The column {column.name!r} shares ?{column.variable}: omitted."
        yield "}"

    def _no_time(self) -> Iterator[str]:
        """What to do about the time of rows without a column of a known form."""
        for column in self._usable:
            if _TIME_NAMES.fullmatch(column.variable) and self._known[column]:
                yield f"  # ?{column.variable} has times such as {self._known[column][0]!r}:"
                yield f"  # BIND an expression of it that gives 2026-01-31T20:15:00 AS ?{TIME}."
                return
        yield f"  # No column looks like a time: BIND ?{TIME}, or use --arrival-time."

    def _is_without_names(self) -> bool:
        """Whether the first line of a text file has a time in place of a name."""
        return any(form.fullmatch(name) for name in self._header for form, _ in _TIMES)

    def _new(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _subject(self, subject: str) -> str:
        place = f"{_NAMESPACE}{subject}/"
        for column in self._usable:
            found = self._known[column]
            if (
                _ID_NAMES.fullmatch(column.name)
                and len(found) == len(self._all[column]) > 0
                and all(isinstance(value, str | int) for value in found)
                and len(set(found)) == len(found)
            ):
                text = f"ENCODE_FOR_URI(STR(?{column.variable}))"
                return f'  BIND(IRI(CONCAT("{place}", {text})) AS ?{subject})'
        return f'  BIND(IRI(CONCAT("{place}", STR(?{ROW}))) AS ?{subject})'

    def _cast(self, column: Column) -> str:
        """The cast of all strings of a column, with `{}` for its variable; empty: none."""
        found = self._known[column]
        if not all(isinstance(value, str) for value in found):
            return ""
        if self._has_commas and self._is_grouped(column):
            return _DECIMAL_COMMAS[-1][1]
        for name, form in _CASTS:
            if found and all(form.fullmatch(value) for value in found):
                return f"xsd:{name}({{}})"
        for form, cast in self._numbers:
            if all(map(form.fullmatch, found)) and any("," in value for value in found):
                return cast
        return ""

    def _texts(self, column: Column) -> list[str]:
        """The values of a column of strings; of any other, none."""
        return [value for value in self._known[column] if isinstance(value, str)]

    def _has_points(self, column: Column) -> bool:
        """Whether all values are numbers, and the point of one separates no thousands."""
        found = self._texts(column)
        form = _CASTS[1][1]
        pointed = (_DECIMAL_POINT.fullmatch(v) and not _GROUPED.fullmatch(v) for v in found)
        return all(map(form.fullmatch, found)) and any(pointed)

    def _shows_commas(self, column: Column) -> bool:
        """Whether all values are numbers, one with a decimal comma, or dates with points."""
        found = self._texts(column)
        form = _DECIMAL_COMMAS[-1][0]
        if all(map(form.fullmatch, found)):
            return any("," in v and not _GROUPED.fullmatch(v) for v in found)
        return "[.]" in (self._time_form(column) or "")

    def _is_grouped(self, column: Column) -> bool:
        """Whether a point in each number of a column may separate thousands: `1.200`."""
        found = self._texts(column)
        grouped = all(_GROUPED.fullmatch(v) or _CASTS[0][1].fullmatch(v) for v in found)
        return grouped and any("." in v for v in found) and not any("," in v for v in found)

    def _time(self) -> Column | None:
        """The column of times: one with a fitting name, else any of dates or times."""
        named = [column for column in self._usable if _TIME_NAMES.fullmatch(column.variable)]
        tests: tuple[Callable[[Column], bool], ...] = (self._is_date_time, self._is_epoch)
        for test in tests:
            for column in named:
                if test(column):
                    return column
        return next(filter(self._is_date_time, self._usable), None)

    def _is_date_time(self, column: Column) -> bool:
        return self._time_form(column) is not None

    def _time_form(self, column: Column) -> str | None:
        """The timestamp of a column of times, with `{}` for its variable; None: no such column."""
        found = self._known[column]
        if found and all(isinstance(value, date) for value in found):
            return "{}"
        if not found or not all(isinstance(value, str) for value in found):
            return None
        for form, expression in _TIMES:
            if all(map(form.fullmatch, found)):
                return expression
        return None

    def _is_epoch(self, column: Column) -> bool:
        return self._unit(column) != ""

    def _unit(self, column: Column) -> str:
        """The unit of a column of numbers that count from 1970, or small ones; empty: neither."""
        try:
            numbers = [float(value) for value in self._known[column]]
        except (TypeError, ValueError):
            return ""
        if not numbers:
            return ""
        least = min(numbers)
        units = [unit for unit, bound in _LEAST_EPOCH.items() if least >= bound]
        return units[-1] if units else "s"


def _predicate(variable: str) -> str:
    return f":{variable}"
