"""A reached limit → an error with the place, the registers that distinguish groups, and a remedy.

Cost: reads at most `EXAMINED_MAX_GROUPS` groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from numbers import Integral
from typing import Concatenate, Literal, ParamSpec, Protocol, TypeVar

from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.place_names import Notation
from spaseq.errors import ArgumentError, Diagnostic, LimitExceeded, Span, kind_of
from spaseq.nfa.native.tables import looks_back
from spaseq.plan.places import sequence_places
from spaseq.rdf.event import Timestamp
from spaseq.rdf.limits import BOUNDS, MOST_TEXT_BYTES, LimitReached, Limits
from spaseq.rdf.time import json_value

EXAMINED_MAX_GROUPS = 100_000
"""The greatest number of groups whose registers an error counts."""

OnLimit = Literal["stop", "shed"]

P = ParamSpec("P")
R = TypeVar("R")

Held = Iterable[tuple[int, Sequence[object]]]
"""Live groups: place, and the values of its registers."""

_FEWER = (
    "groups grow with the values of their registers in the window: shorten WITHIN, compare fewer "
    "of them across steps, or raise --max-groups (max_groups=); with --on-limit shed "
    '(on_limit="shed") the run drops the oldest groups instead'
)
_CHEAPER = (
    "with a variable that steps share, or an = between them, an index finds the groups that fit an "
    "event; `spaseq explain` shows what an event can cost; or raise --max-steps (max_steps=)"
)
_FEWER_ROWS = (
    "the triples of this graph pattern join in too many ways within one event: connect them by a "
    "shared variable, or compare their variables with = instead of another operator; or raise "
)
_SHORTER = (
    "a CONCAT or REPLACE whose argument is the result of another one can double it each time: "
    "shorten the texts, for example with SUBSTR"
)
_UNLISTED = (
    "the matches of one event can double with each event that an iteration may take or leave out "
    "(`spaseq explain` says whether they can): write ; in place of :, so that each step takes the "
    "next event, let EMIT NEXT, LAST, ANY or MAX choose among them, shorten WITHIN, or raise "
)


def limits_of(
    max_groups: int | None,
    max_steps: int | None,
    max_matches: int | None,
    max_memory: int | None,
    on_limit: OnLimit,
) -> Limits:
    """The limits that a caller passes.

    Raises:
        ArgumentError: for a bound that is no whole number.
        ValueError: for a bound that is less than 1, and for an unknown policy.
    """
    bounds = (max_groups, max_steps, max_matches, max_memory)
    for name, bound in zip(BOUNDS, bounds, strict=True):
        if bound is not None and not isinstance(bound, Integral):
            raise ArgumentError(f"{name}: a whole number is needed, not {kind_of(bound)}")
    if on_limit not in ("stop", "shed"):
        raise ValueError(f'on_limit is "stop" or "shed", not {on_limit!r}')
    return Limits(*bounds, on_limit == "shed")


def check_limits(program: CompiledQueries, limits: Limits) -> None:
    """Refuse automata that cannot take an event back, for they look back.

    Raises:
        LimitExceeded: for shedding where steps run out.
    """
    if not limits.shed or limits.steps is None:
        return
    for query in program.queries:
        if looks_back(query.automaton):
            raise LimitExceeded(
                f"the query {query.plan.name} has conjunctions, or negations that look back: it "
                "can shed groups when there are too many (max_groups), but not when an event takes "
                "too many steps (max_steps); omit max_steps or on_limit"
            )


def exceeded(
    reached: LimitReached,
    limits: Limits,
    notation: Notation,
    waiting: tuple[Held, int],
    time: Timestamp | None,
) -> LimitExceeded:
    """The error to raise; `waiting` are the groups, and the number of waiting matches."""
    at = "" if time is None else f" at {json_value(time)}"
    place = reached.place
    if reached.kind == "text":
        return _text_exceeded(notation, at)
    if reached.kind in ("pattern", "memory"):
        return _pattern_exceeded(reached, limits, notation, at)
    if reached.kind == "groups":
        place, where = _crowded(notation, *waiting)
        one = limits.most_groups == 1
        groups = f"group{'s' * (not one)} of partial matches wait{'s' * one}"
        message = f"more than {limits.most_groups:,} {groups}{at} (--max-groups): {where}"
        hint = _FEWER
    elif reached.kind == "matches":
        most = limits.most_matches
        option = "matches" if most == limits.matches else "steps"
        message = f"more than {most:,} match{'es are' if most > 1 else ' is'} complete{at}"
        message += f" (--max-{option})"
        hint = f"{_UNLISTED}--max-{option} (max_{option}=)"
    else:
        message = f"an event{at} takes more than {limits.most_steps:,} steps (--max-steps): " + (
            "candidates that conjunctions and negations try"
            if place < 0
            else f"groups it is compared with in place {notation.title(place)}"
            if place in notation.numbers
            else "matches that wait for their window to close, which a negation may reject"
        )
        hint = _CHEAPER
    span = _span(notation, place)
    return LimitExceeded(
        message, Diagnostic(message, span, hint), notation.plan.source, notation.plan.name
    )


def _text_exceeded(notation: Notation, at: str) -> LimitExceeded:
    """An expression makes a text that is too long, whatever the limits are."""
    message = f"an expression makes a text of more than {MOST_TEXT_BYTES:,} bytes{at}"
    plan = notation.plan
    return LimitExceeded(
        message, Diagnostic(message, plan.sequence.span, _SHORTER), plan.source, plan.name
    )


def _pattern_exceeded(
    reached: LimitReached, limits: Limits, notation: Notation, at: str
) -> LimitExceeded:
    """A bound on what one graph pattern may do with an event."""
    plan, task = notation.plan, reached.place
    where, span = "a graph pattern", plan.sequence.span
    if task in notation.tasks:
        number = notation.tasks.index(task)
        occurrence = next(o.index for o in plan.occurrences if o.gpm == number)
        span = sequence_places(plan.sequence).occurrences[occurrence].reference.span
        where = f"GPM {plan.gpms[number].name}"
    if reached.kind == "memory":
        option, bound = "memory", f"{limits.most_memory:,} bytes for its rows"
    else:
        option, bound = "steps", f"{limits.most_steps:,} steps"
    message = f"an event{at} takes more than {bound} in {where} (--max-{option})"
    hint = f"{_FEWER_ROWS}--max-{option} (max_{option}=)"
    return LimitExceeded(message, Diagnostic(message, span, hint), plan.source, plan.name)


def _span(notation: Notation, place: int) -> Span:
    """The position in the query of the GPM that a place waits for; else of the sequence."""
    if place not in notation.numbers:
        return notation.plan.sequence.span
    atom = notation.automaton.places[place].edges[0].atom
    occurrences = notation.automaton.atoms[atom].occurrences
    if not occurrences:
        return notation.plan.sequence.span
    occurrence = occurrences[0]
    return sequence_places(notation.plan.sequence).occurrences[occurrence].reference.span


def _crowded(notation: Notation, groups: Held, matches: int) -> tuple[int, str]:
    """The place with the most groups, and a text on the registers that distinguish them."""
    counts = Counter[int]()
    values: dict[int, list[set[object]]] = {}
    examined = 0
    for place, some in groups:
        counts[place] += 1
        examined += 1
        if examined <= EXAMINED_MAX_GROUPS:
            seen = values.setdefault(place, [set() for _ in some])
            for known, value in zip(seen, some, strict=True):
                known.add(value)
    if matches > max(counts.values(), default=-1):
        return -1, f"{matches:,} matches wait for their window to close"
    place, number = counts.most_common(1)[0]
    live = notation.automaton.places[place].live
    registers = [notation.register(notation.plan.registers[register]) for register in live]
    apart = sorted(
        zip(registers, values.get(place, []), strict=False), key=lambda item: -len(item[1])
    )
    at_least = "at least " if examined > EXAMINED_MAX_GROUPS else ""
    shown = ", ".join(f"{name} ({at_least}{len(seen):,} values)" for name, seen in apart)
    kept = f", distinguished by {shown}" if shown else ""
    return place, f"{number:,} of them in place {notation.title(place)}{kept}"


class Limited(Protocol):
    """A state whose limits can be reached."""

    def exceeded(self, reached: LimitReached) -> LimitExceeded: ...


S = TypeVar("S", bound=Limited)


def naming_limits(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Turn a `LimitReached` of the core into the `LimitExceeded` that the object makes of it."""

    @wraps(method)
    def naming(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except LimitReached as reached:
            raise self.exceeded(reached) from None

    return naming
