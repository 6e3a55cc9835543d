"""A kind of window that some place does not know raises there; nothing takes it for another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import spaseq
from spaseq.engine.checkpoint import fingerprints
from spaseq.engine.compaction import _is_endless
from spaseq.engine.compiled import counts_events
from spaseq.engine.pattern_rows import _horizon
from spaseq.engine.place_names import window_text
from spaseq.explain.report import explain
from spaseq.nfa.native.tables import tables
from spaseq.nfa.registers import RegisterFile
from spaseq.nfa.window import WindowTimes
from spaseq.nfa.wiring import time_back
from spaseq.parser import ast, format_query, parse
from spaseq.plan.check import check
from spaseq.plan.key_division import by_key, needs_every_event
from spaseq.plan.logical import Window
from spaseq.plan.planner import plan

QUERY = """PREFIX : <http://example.org/>
SELECT ?a WITHIN 10 SECONDS FROM STREAM S :S
WHERE { SEQ(A ; !N) DEFINE GPM A ON S { [] :a ?a } DEFINE GPM N ON S { [] :n [] } }"""
UNKNOWN = str.__new__(ast.WindowKind, "hopping")
UNKNOWN._name_, UNKNOWN._value_ = "HOPPING", "hopping"
WINDOW = Window(UNKNOWN, 10_000_000)
PLANNED: tuple[Callable[[spaseq.Program], object], ...] = (
    lambda program: tables(
        program.queries[0].plan,
        program.queries[0].automaton,
        RegisterFile(program.queries[0].plan, None),  # type: ignore[arg-type]
    ),
    lambda program: time_back(program.queries[0].plan, program.queries[0].automaton),
    lambda program: counts_events(program.queries),
    lambda program: _horizon(program.queries, False),
    lambda program: _horizon(program.queries, True),
    lambda program: by_key(program.queries[0].plan),
    lambda program: needs_every_event(program.queries[0].plan),
    lambda program: program.start(),
    lambda program: explain(program),
)


def unknown() -> spaseq.Program:
    """A program whose plan has an unknown kind of window."""
    program = spaseq.compile(QUERY)
    (query,) = program.queries
    object.__setattr__(query, "plan", replace(query.plan, window=WINDOW))
    return program


@pytest.mark.parametrize("asks", PLANNED)
def test_what_asks_a_plan(asks: Callable[[spaseq.Program], object]) -> None:
    with pytest.raises(AssertionError):
        asks(unknown())


def test_what_asks_a_window() -> None:
    for asks in (
        WindowTimes(WINDOW).opening, WindowTimes(WINDOW).closing, lambda _: window_text(WINDOW),
        lambda _: WINDOW.is_of_time, lambda _: WINDOW.counts_events, lambda _: WINDOW.is_endless,
        lambda _: WINDOW.tumbles,
    ):  # fmt: skip
        with pytest.raises(AssertionError):
            asks(0)


def test_what_asks_a_query() -> None:
    query = parse(QUERY)
    assert query.within is not None
    planted = replace(query, within=replace(query.within, kind=UNKNOWN))
    for asks in (check, plan, format_query):
        with pytest.raises(AssertionError):
            asks(planted)


def test_every_kind_has_its_own_fingerprint() -> None:
    windows = ("10 SECONDS", "TUMBLING 10 SECONDS", "10000000 EVENTS", "UNBOUNDED")
    texts = [QUERY.replace("10 SECONDS", window).replace(" ; !N", " ; N") for window in windows]
    kinds = [query.within.kind for query in map(parse, texts) if query.within is not None]
    assert kinds == list(ast.WindowKind)
    assert len({fingerprints(spaseq.compile(text))[0] for text in texts}) == len(kinds)


def test_a_window_without_times_has_none() -> None:
    for kind in (ast.WindowKind.EVENTS, ast.WindowKind.UNBOUNDED):
        with pytest.raises(ValueError, match="no times"):
            WindowTimes(Window(kind, 3)).closing(0)
    assert callable(_is_endless)
