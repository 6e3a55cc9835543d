"""The table of functions agrees with the implementations of the evaluators."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from enum import IntEnum

import pytest

from spaseq.gpm.native._functions import NativeFunction
from spaseq.gpm.native.bytecode import NotNative, Operation, compile_code
from spaseq.gpm.native.enums import check_enum
from spaseq.gpm.python import aggregates
from spaseq.gpm.python.expression import ExpressionCompiler
from spaseq.gpm.python.functions import FUNCTIONS, KIND_TESTS
from spaseq.parser import ast
from spaseq.parser.keywords import FAMILIES
from spaseq.rdf.conversion import cast
from spaseq.rdf.native._values import decode
from spaseq.sparql.builtins import (
    AGGREGATES,
    BUILTINS,
    CASTS,
    GEOF,
    MATH,
    NAMED_BY_IRI,
    SYNONYMS,
    XSD,
    Builtin,
    shown,
)

FORMS = {"BNODE", "BOUND", "COALESCE", "IF", "NOW", "SAMETERM"}
SLOTS = {"a": 0, "b": 1, "c": 2}
VARIABLES = tuple(map(ast.Var, ("a", "b", "c", "a")))


def test_every_function_has_an_implementation_and_no_other_has_one() -> None:
    kinds = {name: entry.kind for name, entry in BUILTINS.items()}
    by_iri = {name for name, entry in NAMED_BY_IRI.items() if entry.kind == "function"}
    assert FUNCTIONS.keys() == by_iri | {n for n, kind in kinds.items() if kind == "function"}
    assert KIND_TESTS.keys() == {name for name, kind in kinds.items() if kind == "test"}
    assert {name for name, kind in kinds.items() if kind == "form"} == FORMS


def test_every_opcode_is_of_the_machine_and_every_native_function_of_the_table() -> None:
    entries = (*BUILTINS.values(), *NAMED_BY_IRI.values())
    native = {each.opcode for each in entries if each.kind == "function"} - {""}
    assert native == NativeFunction.__members__.keys() - {"NO_NATIVE_FORM"}
    instructions = {each.opcode for each in entries if each.kind != "function"} - {""}
    assert instructions <= set(Operation.__members__)


def test_enums_that_differ_are_an_error() -> None:
    class Here(IntEnum):
        FIRST = 0
        SECOND = 1

    class There(IntEnum):
        FIRST = 0
        SECOND = 2
        THIRD = 1

    check_enum(Here, Here)
    with pytest.raises(ImportError, match="There differs in C: SECOND, THIRD"):
        check_enum(Here, There)


def test_keywords_are_those_of_the_table() -> None:
    assert FAMILIES["BUILTIN"] == BUILTINS.keys() | SYNONYMS.keys()
    assert FAMILIES["AGGREGATE"] == AGGREGATES.keys()
    assert set(SYNONYMS.values()) <= BUILTINS.keys()


@pytest.mark.parametrize("name", CASTS)
def test_casts_are_computed_here(name: str) -> None:
    assert cast(name, decode(ast_literal(name))) is not None


def ast_literal(name: str) -> object:
    import pyoxigraph as ox

    written = {
        "boolean": "true",
        "date": "2026-01-31",
        "dateTime": "2026-01-31T12:00:00Z",
        "dayTimeDuration": "P1D",
        "duration": "P1D",
        "time": "12:00:00",
        "yearMonthDuration": "P1Y",
    }
    return ox.Literal(written.get(name, "1"))


@pytest.mark.parametrize("name", sorted(a.name for a in AGGREGATES.values() if not a.of_sequence))
def test_aggregates_over_nothing(name: str) -> None:
    assert (aggregates.aggregate(name, []) is not None) == AGGREGATES[name].value_of_nothing


def calls() -> list[ast.Call | ast.FunctionCall]:
    """A call of every function with every number of arguments it takes, up to four."""
    found: list[ast.Call | ast.FunctionCall] = []
    for entry in (*BUILTINS.values(), *NAMED_BY_IRI.values()):
        for count in range(5):
            if not entry.accepts(count):
                continue
            arguments = VARIABLES[:count]
            if entry.name in NAMED_BY_IRI:
                found.append(ast.FunctionCall(ast.Iri(entry.name), arguments))
            else:
                found.append(ast.Call(entry.name, arguments))
    return found


@pytest.mark.parametrize("call", calls(), ids=lambda call: repr(call)[:40])
def test_what_the_table_admits_compiles(call: ast.Expr) -> None:
    compiler = ExpressionCompiler(SLOTS, frozenset(), lambda *_: lambda env, scope: None)
    assert callable(compiler.value(call))
    assert callable(compiler.truth(call))
    with suppress(NotNative):
        assert compile_code(call, SLOTS).code.operations


@pytest.mark.parametrize(
    ("entry", "arity", "call"),
    [
        (BUILTINS["NOW"], "no arguments", "NOW()"),
        (BUILTINS["STRLEN"], "1 argument", "STRLEN(…)"),
        (BUILTINS["SUBSTR"], "2 or 3 arguments", "SUBSTR(text, start, length?)"),
        (NAMED_BY_IRI[XSD + "date"], "1 argument", "xsd:date(?x)"),
        (Builtin("urn:f", 1, None), "at least 1 argument", "<urn:f>(…)"),
        (Builtin("urn:f", 2, None), "at least 2 arguments", "<urn:f>(…, …)"),
    ],
)
def test_arities_in_words(entry: Builtin, arity: str, call: str) -> None:
    assert (entry.arity, entry.call) == (arity, call)


def test_names_as_queries_write_them() -> None:
    assert shown("STRLEN") == "STRLEN"
    assert shown(XSD + "date") == "xsd:date"
    assert shown(MATH + "sqrt") == "math:sqrt"
    assert shown(GEOF + "distance") == "geof:distance"
    assert shown("http://e/f") == "<http://e/f>"


# ------------------------------------------------------------------ one more entry

ADD = """
from spaseq.sparql import builtins
builtins.BUILTINS["OPPOSITE"] = builtins.Builtin(
    "OPPOSITE", 1, 1, python="{python}", opcode="{opcode}", arguments=("number",), result="number"
)
"""
QUERY = """
import spaseq
QUERY = '''PREFIX : <http://e/>
SELECT ?v WITHIN 10 EVENTS FROM STREAM s :s
WHERE { SEQ(A) DEFINE GPM A ON s { ?x :p ?v FILTER(OPPOSITE(?v) < -2) } }'''
run = spaseq.compile(QUERY).start()
for value in range(5):
    literal = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    for match in run.push("http://e/s", value, f"<http://e/x> <http://e/p> {literal} .".encode()):
        print(match.bindings["v"].value)
try:
    spaseq.compile(QUERY.replace("OPPOSITE(?v)", "OPPOSITE(?v, 1)"))
except spaseq.QueryError as error:
    print(str(error).splitlines()[0])
"""


def in_a_process_of_its_own(text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", text]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_function_is_one_entry() -> None:
    """Keyword, check and both evaluators follow from an entry that is there at import."""
    result = in_a_process_of_its_own(ADD.format(python="conversion.negate", opcode="") + QUERY)
    *values, error = result.stdout.splitlines() or [result.stderr]
    assert values == ["3", "4"]
    assert "OPPOSITE" in error
    assert "1 argument" in error


@pytest.mark.parametrize(
    ("python", "opcode", "message"),
    [
        ("conversion.opposite", "", "OPPOSITE names 'conversion.opposite'"),
        ("conversion.negate", "OPPOSITE", "NativeFunction and the built-in functions differ"),
    ],
)
def test_an_entry_without_its_implementation_is_an_error(
    python: str, opcode: str, message: str
) -> None:
    text = ADD.format(python=python, opcode=opcode) + "import spaseq.gpm.matchers"
    result = in_a_process_of_its_own(text)
    assert "ImportError" in result.stderr
    assert message in result.stderr
