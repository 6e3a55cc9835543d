"""The functions that a query may call: one table of names, arities and kinds.

The parser derives its keywords from this table, the checks derive the known functions and their
arities, and the evaluators derive which functions are volatile. A call that the table admits
compiles; any other call is reported by the checks. Each evaluator has its own implementations by
name, and `tests/unit/test_builtins.py` compares the names.

Sources: SPARQL 1.1, production [121] and section 17; docs/language.md, section 4, for `FIRST`
and `LAST`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

XSD = "http://www.w3.org/2001/XMLSchema#"


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function with its arity.

    `kind` says how an evaluator treats a call:

    function    maps values to a value or an error
    test        maps a value to a boolean
    form        a special form: reads the row, or does not evaluate all arguments
    cast        maps a value to a literal of the datatype whose IRI is `name`
    """

    name: str
    """In upper case, or an IRI."""
    least: int
    most: int | None
    """None: no bound."""
    signature: str = ""
    """How a call is written, if its form does not follow from the number of arguments."""
    kind: Literal["function", "test", "form", "cast"] = "function"
    opcode: str = ""
    """The bytecode instruction that computes this function, if there is one of its own."""
    volatile: bool = False
    """Whether two calls with equal arguments may return different results."""
    by_reference: bool = False
    """Whether pyoxigraph, the reference implementation, computes each call."""

    def accepts(self, count: int) -> bool:
        """Whether a call may have `count` arguments."""
        return self.least <= count and (self.most is None or count <= self.most)

    @property
    def arity(self) -> str:
        """The number of arguments in words: `1 argument`, `2 or 3 arguments`."""
        if self.most is None:
            return f"at least {self.least} argument{'' if self.least == 1 else 's'}"
        if self.least == self.most:
            many = "" if self.most == 1 else "s"
            return f"{self.most or 'no'} argument{many}"
        return f"{self.least} or {self.most} arguments"

    @property
    def call(self) -> str:
        """How a call is written."""
        return self.signature or f"{shown(self.name)}({', '.join('…' * self.least)})"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate function."""

    name: str
    value_of_nothing: bool = False
    """Whether it has a value for an empty input."""
    of_sequence: bool = False
    """Whether it aggregates only iterations, not the rows of a sub-select."""


def _function(name: str, least: int, most: int | None = -1, signature: str = "") -> Builtin:
    return Builtin(name, least, least if most == -1 else most, signature)


def _test(name: str, opcode: str) -> Builtin:
    return Builtin(name, 1, 1, kind="test", opcode=opcode)


def _form(name: str, least: int, most: int | None, signature: str = "") -> Builtin:
    return Builtin(name, least, most, signature, kind="form")


def _chance(name: str) -> Builtin:
    return Builtin(name, 0, 0, volatile=True)


_TABLE = (
    _function("ABS", 1),
    Builtin("BNODE", 0, 1, "BNODE() or BNODE(text)", kind="form", volatile=True),
    _form("BOUND", 1, 1, "BOUND(?v)"),
    _function("CEIL", 1),
    _form("COALESCE", 0, None),
    _function("CONCAT", 0, None),
    _function("CONTAINS", 2, signature="CONTAINS(text, part)"),
    _function("DATATYPE", 1),
    _function("DAY", 1),
    _function("ENCODE_FOR_URI", 1),
    _function("FLOOR", 1),
    _function("HOURS", 1),
    _form("IF", 3, 3, "IF(condition, then, else)"),
    _function("IRI", 1),
    _test("ISBLANK", "IS_BLANK"),
    _test("ISIRI", "IS_IRI"),
    _test("ISLITERAL", "IS_LITERAL"),
    _test("ISNUMERIC", "IS_NUMERIC"),
    _function("LANG", 1),
    _function("LANGMATCHES", 2, signature="LANGMATCHES(LANG(?v), range)"),
    _function("LCASE", 1),
    _function("MD5", 1),
    _function("MINUTES", 1),
    _function("MONTH", 1),
    Builtin("NOW", 0, 0, kind="form", volatile=True),
    _chance("RAND"),
    _function("REGEX", 2, 3, "REGEX(text, pattern, flags?)"),
    _function("REPLACE", 3, 4, "REPLACE(text, pattern, replacement, flags?)"),
    _function("ROUND", 1),
    Builtin("SAMETERM", 2, 2, "sameTerm(a, b)", kind="form", opcode="SAME_TERM"),
    _function("SECONDS", 1),
    _function("SHA1", 1),
    _function("SHA256", 1),
    _function("SHA384", 1),
    _function("SHA512", 1),
    _function("STR", 1),
    _function("STRAFTER", 2, signature="STRAFTER(text, part)"),
    _function("STRBEFORE", 2, signature="STRBEFORE(text, part)"),
    _function("STRDT", 2, signature="STRDT(text, datatype)"),
    _function("STRENDS", 2, signature="STRENDS(text, end)"),
    _function("STRLANG", 2, signature="STRLANG(text, tag)"),
    _function("STRLEN", 1),
    _function("STRSTARTS", 2, signature="STRSTARTS(text, start)"),
    _chance("STRUUID"),
    _function("SUBSTR", 2, 3, "SUBSTR(text, start, length?)"),
    _function("TIMEZONE", 1),
    _function("TZ", 1),
    _function("UCASE", 1),
    _chance("UUID"),
    _function("YEAR", 1),
)

BUILTINS: dict[str, Builtin] = {entry.name: entry for entry in _TABLE}
"""The functions called by keyword."""

SYNONYMS = {"URI": "IRI", "ISURI": "ISIRI"}
"""Synonym → the name used in the syntax tree."""

CASTS = (
    "boolean", "date", "dateTime", "dayTimeDuration", "decimal", "double", "duration", "float",
    "integer", "string", "time", "yearMonthDuration",
)  # fmt: skip
"""The target datatypes of casts, as local names in `xsd:`."""

REFERENCE_CASTS = ("gDay", "gMonth", "gMonthDay", "gYear", "gYearMonth")
"""The target datatypes of casts that pyoxigraph computes."""

NAMED_BY_IRI: dict[str, Builtin] = {
    XSD + name: Builtin(
        XSD + name,
        1,
        1,
        f"xsd:{name}(?x)",
        kind="cast",
        by_reference=name in REFERENCE_CASTS,
    )
    for name in (*CASTS, *REFERENCE_CASTS)
}
"""The functions called by IRI."""

AGGREGATES: dict[str, Aggregate] = {
    entry.name: entry
    for entry in (
        Aggregate("COUNT", value_of_nothing=True),
        Aggregate("SUM", value_of_nothing=True),
        Aggregate("MIN"),
        Aggregate("MAX"),
        Aggregate("AVG", value_of_nothing=True),
        Aggregate("SAMPLE"),
        Aggregate("GROUP_CONCAT", value_of_nothing=True),
        Aggregate("FIRST", of_sequence=True),
        Aggregate("LAST", of_sequence=True),
    )
}


def shown(name: str) -> str:
    """A function's name as a query writes it: `STRLEN`, `xsd:date`, `<http://…>`."""
    if name.startswith(XSD):
        return f"xsd:{name.removeprefix(XSD)}"
    return f"<{name}>" if ":" in name else name
