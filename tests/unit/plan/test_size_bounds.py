"""Queries of a hostile size or shape are refused before they cost time and memory."""

from __future__ import annotations

import pytest

import spaseq
from spaseq.errors import QuerySemanticError
from spaseq.gpm import pattern
from spaseq.nfa.compile import MAX_TRANSITIONS
from spaseq.plan.check_patterns import MAX_LEVELS


def query(seq: str, count: int, body: str = "?s :p ?v") -> str:
    defines = "\n".join(f"DEFINE GPM X{n} ON S {{ {body} }}" for n in range(count))
    return (
        "PREFIX : <http://example.org/> SELECT * WITHIN 1 HOUR FROM STREAM S :S\n"
        f"WHERE {{ SEQ({seq}) {defines} }}"
    )


@pytest.mark.parametrize(
    "seq",
    [
        pytest.param("X0; " + "; ".join(f"X{n}?" for n in range(1, 100)), id="optional steps"),
        pytest.param("X0; (" + "; ".join(f"X{n}*" for n in range(1, 99)) + "; X99)+", id="stars"),
        *(
            pytest.param(
                "(" + f" {operator} ".join(f"(X{n} | X{n + 1})" for n in range(0, 100, 2)) + ")",
                id=f"| in {operator}",
            )
            for operator in ("&", "AND")
        ),
    ],
)
def test_too_many_transitions(seq: str) -> None:
    with pytest.raises(QuerySemanticError, match=f"more than {MAX_TRANSITIONS:,}") as found:
        spaseq.compile(query(seq, 100))
    assert (found.value.line, found.value.column) == (2, 9)
    assert "divide the query" in found.value.hint


@pytest.mark.parametrize(
    "element",
    ["OPTIONAL { ?s :q ?w }", "MINUS { ?s :q ?w }", "{ ?s :q ?w } UNION { ?s :r ?w }",
     "GRAPH :g { ?s :q ?w }", "VALUES ?s { :a :b }", "?s (:p|:q) ?w . "],
)  # fmt: skip
def test_too_many_operators_above_one_another(element: str) -> None:
    def text(count: int) -> str:
        return query("X0", 1, "?s :p ?v . " + element * count)

    spaseq.compile(text(MAX_LEVELS - 3)).start()
    with pytest.raises(QuerySemanticError, match=f"the maximum of one GPM is {MAX_LEVELS}"):
        spaseq.compile(text(MAX_LEVELS + 1))


def test_nested_operators_add_up() -> None:
    inner = "OPTIONAL { ?s :q ?w }" * (MAX_LEVELS // 2)
    with pytest.raises(QuerySemanticError, match="the maximum of one GPM") as found:
        spaseq.compile(query("X0", 1, f"?s :p ?v . {{ {inner} {{ {inner} }} }}"))
    assert found.value.line == 2


@pytest.mark.parametrize(("last", "most"), [("?v > 1", 2), ("REGEX(?v, ?u)", 12)])
def test_filters_are_compiled_together(
    last: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter that is not native is found by halving."""
    lowered = []
    lower = pattern.lower

    def counted(*arguments):
        lowered.append(arguments)
        return lower(*arguments)

    monkeypatch.setattr(pattern, "lower", counted)
    filters = "".join(f"FILTER(?v > {n})" for n in range(200))
    spaseq.compile(query("X0", 1, f"?s :p ?v ; :q ?u . {filters} FILTER({last})"))
    assert len(lowered) <= most
