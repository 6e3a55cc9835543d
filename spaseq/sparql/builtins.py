"""The functions that a query may call: one table, one entry for each function.

Everything that depends on the set of functions is derived from an entry: the keywords of the
parser, the check of names and numbers of arguments, the Python implementation
(`spaseq.gpm.python.functions`), the native form (`spaseq.gpm.native._functions` and
`spaseq.gpm.native.bytecode`) and the calls that the tests draw. A call that this table admits
compiles; a call that it does not admit is an error of the check. A function without `opcode` runs
in Python. `CONTRIBUTING.md` shows how to add one.

Functions of users are not in this table; `spaseq.sparql.registry` has them, and `named_function`
there finds both.

Sources: SPARQL 1.1, production [121] and section 17, and what SPARQL 1.2 adds; docs/language.md,
section 4, for `FIRST` and `LAST`; XPath and XQuery Functions 3.1, section 4.8, for `math:`;
GeoSPARQL 1.1, section 9, for `geof:`.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, cast

from spaseq.records import dataclass

XSD = "http://www.w3.org/2001/XMLSchema#"
MATH = "http://www.w3.org/2005/xpath-functions/math#"
GEOF = "http://www.opengis.net/def/function/geosparql/"

Sort: TypeAlias = Literal["any", "boolean", "number", "text", "time"]
"""What an argument or a result is; time: a point in time or a duration, any: any term."""
Kind: TypeAlias = Literal["function", "test", "form", "cast", "registered"]


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function with its arity and its implementations.

    `kind` says how an evaluator treats a call:

    function    maps values to a value or an error
    test        maps a value to a boolean, by an instruction of its own
    form        a special form: reads the row, or does not evaluate all arguments
    cast        maps a value to a literal of the datatype whose IRI is `name`
    registered  a function of a user (`spaseq.sparql.registry`), which Python calls
    """

    name: str
    """In upper case, or an IRI."""
    least: int
    """The least number of arguments."""
    most: int | None
    """The greatest number of arguments; None: no bound."""
    signature: str = ""
    """A call as messages show it, if it is not `NAME(…)`."""
    kind: Kind = "function"
    python: str = ""
    """The Python implementation of a function or test, as `module.function`.

    The module is `functions`, `strings`, `maths` or `geometry` of `spaseq.gpm.python`, or
    `spaseq.rdf.conversion`.
    """
    opcode: str = ""
    """The native form: for a function, a member of `NativeFunction` (`gpm/native/_functions.pxd`);
    for a test or form, an instruction (`spaseq.gpm.native.bytecode.Operation`); empty: none."""
    arguments: tuple[Sort, ...] = ()
    """The sorts of arguments that a call expects; the last one applies to all further arguments."""
    result: Sort = "any"
    volatile: bool = False
    """Whether two calls with equal arguments may return different results."""
    by_reference: bool = False
    """Whether pyoxigraph, the reference implementation, computes each call."""

    def accepts(self, count: int) -> bool:
        """Whether a call may have `count` arguments."""
        return self.least <= count and (self.most is None or count <= self.most)

    @property
    def arity(self) -> str:
        """A description of the number of arguments: `1 argument`, `2 or 3 arguments`."""
        if self.most is None:
            return f"at least {self.least} argument{'' if self.least == 1 else 's'}"
        if self.least == self.most:
            many = "" if self.most == 1 else "s"
            return f"{self.most or 'no'} argument{many}"
        return f"{self.least} or {self.most} arguments"

    @property
    def call(self) -> str:
        """A call, as messages show it."""
        return self.signature or f"{shown(self.name)}({', '.join('…' * self.least)})"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate function."""

    name: str
    value_of_nothing: bool = False
    """Whether it has a value for an empty input."""
    of_sequence: bool = False
    """Whether it aggregates only iterations, not the rows of a sub-select."""


def _entry(
    kind: Kind,
    name: str,
    sorts: str,
    signature: str = "",
    *,
    python: str = "",
    opcode: str = "",
    volatile: bool = False,
    by_reference: bool = False,
) -> Builtin:
    """An entry whose arity follows from `sorts`.

    `text number number? -> text` has 2 or 3 arguments, `text* -> text` any number of them.
    """
    before, _, result = sorts.rpartition("->")
    arguments = before.split()
    required = [sort for sort in arguments if sort[-1] not in "?*"]
    return Builtin(
        name,
        len(required),
        None if before.rstrip().endswith("*") else len(arguments),
        signature,
        kind,
        python,
        opcode,
        cast("tuple[Sort, ...]", tuple(sort.rstrip("?*") for sort in arguments)),
        cast("Sort", result.strip()),
        volatile,
        by_reference,
    )


def _function(
    name: str,
    sorts: str,
    python: str,
    opcode: str = "",
    signature: str = "",
    *,
    volatile: bool = False,
    by_reference: bool = False,
) -> Builtin:
    return _entry(
        "function",
        name,
        sorts,
        signature,
        python=python,
        opcode=opcode,
        volatile=volatile,
        by_reference=by_reference,
    )


def _test(name: str, python: str, opcode: str) -> Builtin:
    return _entry("test", name, "any -> boolean", python=python, opcode=opcode)


def _form(
    name: str, sorts: str, signature: str = "", *, opcode: str = "", volatile: bool = False
) -> Builtin:
    return _entry("form", name, sorts, signature, opcode=opcode, volatile=volatile)


# fmt: off
_TABLE = (
    _function("ABS", "number -> number", "conversion.absolute", "ABS"),
    _form("BNODE", "text? -> any", "BNODE() or BNODE(text)", volatile=True),
    _form("BOUND", "any -> boolean", "BOUND(?v)"),
    _function("CEIL", "number -> number", "conversion.ceiling", "CEIL"),
    _form("COALESCE", "any* -> any"),
    _function("CONCAT", "text* -> text", "strings.concat", "CONCAT"),
    _function("CONTAINS", "text text -> boolean", "strings.contains", "CONTAINS",
              "CONTAINS(text, part)"),
    _function("DATATYPE", "any -> any", "functions.datatype_iri", "DATATYPE"),
    _function("DAY", "time -> number", "functions.day", "DAY"),
    _function("ENCODE_FOR_URI", "text -> text", "strings.encode_for_uri", "ENCODE_FOR_URI"),
    _function("FLOOR", "number -> number", "conversion.floored", "FLOOR"),
    _function("HASLANG", "any -> boolean", "functions.has_language", "HASLANG"),
    _function("HASLANGDIR", "any -> boolean", "functions.has_direction", "HASLANGDIR"),
    _function("HOURS", "time -> number", "functions.hours", "HOURS"),
    _form("IF", "any any any -> any", "IF(condition, then, else)"),
    _function("IRI", "text -> any", "functions.iri", "IRI"),
    _test("ISBLANK", "functions.is_blank", "IS_BLANK"),
    _test("ISIRI", "functions.is_iri", "IS_IRI"),
    _test("ISLITERAL", "functions.is_literal", "IS_LITERAL"),
    _test("ISNUMERIC", "functions.is_numeric", "IS_NUMERIC"),
    _test("ISTRIPLE", "functions.is_triple", "IS_TRIPLE"),
    _function("LANG", "any -> text", "functions.language_tag", "LANG"),
    _function("LANGDIR", "any -> text", "functions.language_direction", "LANGDIR"),
    _function("LANGMATCHES", "text text -> boolean", "functions.language_matches", "LANGMATCHES",
              "LANGMATCHES(LANG(?v), range)"),
    _function("LCASE", "text -> text", "strings.lcase", "LCASE"),
    _function("MD5", "text -> text", "functions.md5"),
    _function("MINUTES", "time -> number", "functions.minutes", "MINUTES"),
    _function("MONTH", "time -> number", "functions.month", "MONTH"),
    _form("NOW", "-> time", volatile=True),
    _function("OBJECT", "any -> any", "functions.triple_object", "OBJECT"),
    _function("PREDICATE", "any -> any", "functions.triple_predicate", "PREDICATE"),
    _function("RAND", "-> number", "functions.random_number", volatile=True),
    _function("REGEX", "text text text? -> boolean", "strings.regex", "",
              "REGEX(text, pattern, flags?)"),
    _function("REPLACE", "text text text text? -> text", "strings.replace", "REPLACE",
              "REPLACE(text, pattern, replacement, flags?)"),
    _function("ROUND", "number -> number", "conversion.rounded", "ROUND"),
    _form("SAMETERM", "any any -> boolean", "sameTerm(a, b)", opcode="SAME_TERM"),
    _function("SECONDS", "time -> number", "functions.seconds", "SECONDS"),
    _function("SHA1", "text -> text", "functions.sha1"),
    _function("SHA256", "text -> text", "functions.sha256"),
    _function("SHA384", "text -> text", "functions.sha384"),
    _function("SHA512", "text -> text", "functions.sha512"),
    _function("STR", "any -> text", "functions.lexical_form", "STR"),
    _function("STRAFTER", "text text -> text", "strings.strafter", "STRAFTER",
              "STRAFTER(text, part)"),
    _function("STRBEFORE", "text text -> text", "strings.strbefore", "STRBEFORE",
              "STRBEFORE(text, part)"),
    _function("STRDT", "text any -> any", "functions.typed_literal", "STRDT",
              "STRDT(text, datatype)"),
    _function("STRENDS", "text text -> boolean", "strings.strends", "STRENDS",
              "STRENDS(text, end)"),
    _function("STRLANG", "text text -> text", "functions.tagged_literal", "", "STRLANG(text, tag)"),
    _function("STRLANGDIR", "text text text -> text", "functions.directed_literal", "",
              "STRLANGDIR(text, tag, direction)"),
    _function("STRLEN", "text -> number", "strings.strlen", "STRLEN"),
    _function("STRSTARTS", "text text -> boolean", "strings.strstarts", "STRSTARTS",
              "STRSTARTS(text, start)"),
    _function("STRUUID", "-> text", "functions.uuid_text", volatile=True),
    _function("SUBJECT", "any -> any", "functions.triple_subject", "SUBJECT"),
    _function("SUBSTR", "text number number? -> text", "strings.substr", "SUBSTR",
              "SUBSTR(text, start, length?)"),
    _function("TIMEZONE", "time -> time", "functions.zone_duration"),
    _function("TRIPLE", "any any any -> any", "functions.triple", "TRIPLE",
              "TRIPLE(subject, predicate, object)"),
    _function("TZ", "time -> text", "functions.zone_text"),
    _function("UCASE", "text -> text", "strings.ucase", "UCASE"),
    _function("UUID", "-> any", "functions.uuid_iri", volatile=True),
    _function("YEAR", "time -> number", "functions.year", "YEAR"),
)
# fmt: on

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


def _math(name: str, sorts: str = "number -> number", signature: str = "") -> Builtin:
    call = signature or f"math:{name}({'?x' if sorts.startswith('number') else ''})"
    return _function(MATH + name, sorts, f"maths.{name}", f"MATH_{name.upper()}", call)


def _geometry(name: str, sorts: str, signature: str) -> Builtin:
    python = re.sub("(?=[A-Z])", "_", name).lower()
    return _function(GEOF + name, sorts, f"geometry.{python}", "", f"geof:{name}({signature})")


_MATH = (
    _math("pi", "-> number"),
    *map(_math, ("exp", "exp10", "log", "log10", "sqrt", "sin", "cos", "tan")),
    *map(_math, ("asin", "acos", "atan")),
    _math("pow", "number number -> number", "math:pow(?base, ?exponent)"),
    _math("atan2", "number number -> number", "math:atan2(?y, ?x)"),
)
_GEOMETRY = (
    _geometry("distance", "any any any -> number", "?a, ?b, unit"),
    _geometry("buffer", "any number any -> any", "?a, radius, unit"),
    _geometry("envelope", "any -> any", "?a"),
    _geometry("convexHull", "any -> any", "?a"),
    *(
        _geometry(name, "any any -> boolean", "?a, ?b")
        for name in (
            "sfContains", "sfCrosses", "sfDisjoint", "sfEquals", "sfIntersects", "sfOverlaps",
            "sfTouches", "sfWithin",
        )
    ),
)  # fmt: skip

NAMED_BY_IRI: dict[str, Builtin] = {
    entry.name: entry
    for entry in (
        *(
            Builtin(
                XSD + name,
                1,
                1,
                f"xsd:{name}(?x)",
                kind="cast",
                by_reference=name in REFERENCE_CASTS,
            )
            for name in (*CASTS, *REFERENCE_CASTS)
        ),
        *_MATH,
        *_GEOMETRY,
    )
}
"""The functions called by IRI."""


def functions_by_name() -> dict[str, Builtin]:
    """The entries of kind `function`, by keyword and by IRI."""
    entries = (*BUILTINS.values(), *NAMED_BY_IRI.values())
    return {entry.name: entry for entry in entries if entry.kind == "function"}


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


_PREFIXES = (("xsd", XSD), ("math", MATH), ("geof", GEOF))


def shown(name: str) -> str:
    """A function's name as a query writes it: `STRLEN`, `xsd:date`, `<http://…>`."""
    for prefix, namespace in _PREFIXES:
        if name.startswith(namespace):
            return f"{prefix}:{name.removeprefix(namespace)}"
    return f"<{name}>" if ":" in name else name
