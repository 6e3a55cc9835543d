"""The table of what a query may call, against what the evaluators have."""

from __future__ import annotations

from contextlib import suppress

import pytest

from spaseq.gpm.native.bytecode import NotNative, Operation, compile_code
from spaseq.gpm.python import aggregates
from spaseq.gpm.python.expression import ExpressionCompiler
from spaseq.gpm.python.functions import FUNCTIONS, KIND_TESTS
from spaseq.parser import ast
from spaseq.parser.keywords import FAMILIES
from spaseq.rdf._values import decode
from spaseq.rdf.conversion import cast
from spaseq.sparql.builtins import (
    AGGREGATES,
    BUILTINS,
    CASTS,
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
    assert FUNCTIONS.keys() == {name for name, kind in kinds.items() if kind == "function"}
    assert KIND_TESTS.keys() == {name for name, kind in kinds.items() if kind == "test"}
    assert {name for name, kind in kinds.items() if kind == "form"} == FORMS


def test_native_functions_are_of_the_table() -> None:
    from spaseq.gpm.native import _functions

    assert set(_functions.Native.__members__) - {"PYTHON"} <= BUILTINS.keys()


def test_instructions_are_of_the_machine() -> None:
    assert {each.opcode for each in BUILTINS.values()} - {""} <= set(Operation.__members__)


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
            if entry.kind == "cast":
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
    assert shown("http://e/f") == "<http://e/f>"
