"""The `SEQ` expression → errors in its structure.

These are the rules of docs/language.md, section 2, that involve no variables: names, negations,
quantifiers, units that can match nothing, operands of `&` and `AND`, and which last steps each
kind of window allows. A parenthesised single step counts as that step (section 8). Each error is
reported at the innermost place that has it. Cost: linear in the sequence.
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.errors import Diagnostic, Span
from spaseq.parser import ast
from spaseq.plan.places import SequencePlaces, without_parentheses
from spaseq.plan.wording import did_you_mean, excerpt, question_or, quoted

MAX_CONJOINED = 255
"""The most GPMs in one `&` or `AND` group: a step stores the GPM of each event in one byte."""


def check_sequence(query: ast.Query, places: SequencePlaces) -> list[Diagnostic]:
    """The findings about the structure of the sequence and the names in it."""
    shape = _Shape(query.text)
    sequence = without_parentheses(query.sequence)
    shape.whole(sequence)
    return [*_names(query, places), *shape.findings, *_open_end(query, sequence)]


# ------------------------------------------------------------------ names


def _names(query: ast.Query, places: SequencePlaces) -> Iterator[Diagnostic]:
    first: dict[str, ast.Define] = {}
    for define in query.defines:
        if define.name in first:
            yield Diagnostic(
                f"GPM {quoted(define.name)} is defined twice",
                define.name_span,
                "rename one of the two, and use that name in SEQ",
                first[define.name].name_span,
                "first defined here",
            )
        first.setdefault(define.name, define)
    used = {place.name for place in places.occurrences}
    reported: set[str] = set()
    for place in places.occurrences:
        name = place.name
        if name in first or name in reported:
            continue
        reported.add(name)
        yield Diagnostic(
            f"GPM {quoted(name)} is not defined",
            place.reference.span,
            did_you_mean(name, first)
            or f"add `DEFINE GPM {name} ON stream {{ … }}` after SEQ, or remove {name} from SEQ",
        )
    for name, define in first.items():
        if name not in used:
            yield Diagnostic(
                f"GPM {quoted(name)} is defined, but SEQ does not use it",
                define.name_span,
                question_or(
                    did_you_mean(name, used - first.keys()).replace(
                        "did you mean", "is it meant to be the undefined"
                    ),
                    f"add {name} to SEQ, or delete its DEFINE",
                ),
            )


# ------------------------------------------------------------------ shape


MAX_ITERATIONS = 2**31 - 1
"""The most iterations of one unit: registers count them in 32 bits."""


class _Shape:
    """Walks the sequence from the outside in and collects the errors."""

    def __init__(self, text: str):
        self.text = text
        self.findings: list[Diagnostic] = []

    def whole(self, sequence: ast.Sequence) -> None:
        if self._steps(sequence, None):
            if all(step.negated for step in sequence.steps):
                self._error(
                    "SEQ contains only negations, so no event can match it",
                    sequence.span,
                    "add a step that an event matches: `!N; A` matches A without an N before it, "
                    "`A; !N` A without an N after it",
                )
                return
            self._error(
                "every step of SEQ is optional, so the pattern can match nothing at all",
                sequence.span,
                "make at least one step mandatory: drop a `?`, or write `+` in place of `*`",
            )

    def _error(
        self,
        message: str,
        span: Span,
        hint: str,
        other: Span | None = None,
        label: str = "",
    ) -> None:
        self.findings.append(Diagnostic(message, span, hint, other, label))

    def _steps(
        self, sequence: ast.Sequence, reaching: ast.Step | None, leads: str | None = None
    ) -> bool:
        """Whether the sequence can match nothing; the caller reports it.

        `reaching` is the step whose operator precedes the sequence, `leads` the sign (`|`, `!`) of
        the operand or negated unit that begins with the sequence.
        """
        skippable = True
        if all(step.negated for step in sequence.steps):
            leads = None  # a unit without any event has a more important error
        for position, step in enumerate(sequence.steps):
            leading = None if position else leads
            if step.negated:
                self._negation(step, leading)
            in_front = step if position else reaching
            empty = self._unit(
                step.unit,
                None if step.negated else in_front,
                "!" if step.negated else leading,
            )
            if empty:
                self._empty_unit(step)
                skippable = False
            if step.quantifier is not None and not step.negated:
                self._bounds(step.quantifier)
            if not step.negated and not _is_optional(step):
                skippable = False
        return skippable

    def _negation(self, step: ast.Step, leading: str | None) -> None:
        what = excerpt(self.text, step.unit.span, "its unit")
        if leading == "|":
            self._error(
                "an operand of `|` cannot start with a negation",
                step.span,
                f"move the negation of {what} in front of the disjunction, where it applies to "
                "both sides: `!N; (A | B)`, or write out the step before it: "
                "`(A; !N WITHIN 5 SECONDS) | (A; B)`",
            )
        elif leading is not None:
            self._error(
                "a negated unit cannot start with a negation",
                step.span,
                f"start the unit with a step that an event matches, or drop the negation of {what}",
            )
        if step.quantifier is not None:
            self._error(
                "a negation has no quantifier: it already means that no such event occurs",
                step.quantifier.span,
                f"delete the quantifier; to forbid a repetition, negate it in parentheses: "
                f"`!({_plain(what)}{{2}})`",
            )

    def _bounds(self, quantifier: ast.Quantifier) -> None:
        least, most = quantifier.least, quantifier.most
        if max(least, most or 0) > MAX_ITERATIONS:
            self._error(
                f"a quantifier counts at most {MAX_ITERATIONS:,} iterations",
                quantifier.span,
                f"write `{{{min(least, MAX_ITERATIONS)},}}` for that many or more",
            )
        elif most == 0:
            self._error(
                "a unit repeated zero times matches nothing",
                quantifier.span,
                "delete the step, or write `!` before it to require that it does not occur",
            )
        elif most is not None and least > most:
            self._error(
                f"the quantifier requires at least {least} iterations but at most {most}",
                quantifier.span,
                f"write `{{{most},{least}}}` for {most} to {least} iterations",
            )

    def _empty_unit(self, step: ast.Step) -> None:
        what = excerpt(self.text, step.unit.span, "the unit")
        if step.negated:
            consequence = "so it is never absent, and the negation can never hold"
        elif step.quantifier is not None:
            consequence = "so it cannot be repeated or made optional once more"
        else:
            consequence = "so it cannot be a step"
        self._error(
            f"{what} can match nothing, {consequence}",
            step.unit.span,
            "make one of the inner steps mandatory: drop its `?`, or write `+` in place of `*`; "
            "to make the whole group optional, write the `?` or `*` only after the parenthesis",
        )

    def _unit(self, unit: ast.Unit, in_front: ast.Step | None, leads: str | None = None) -> bool:
        """Whether the unit can match nothing; the caller reports it."""
        match unit:
            case ast.GpmRef():
                return False
            case ast.Sequence():
                return self._steps(unit, in_front, leads)
            case ast.Disjunction():
                for side in unit.operands:
                    if self._unit(side, in_front, "|"):
                        what = excerpt(self.text, side.span, "the side")
                        self._error(
                            f"{what} can match nothing, so it cannot be an operand of `|`",
                            side.span,
                            "drop its `?` or `*`, and make the whole disjunction optional "
                            "instead: `(A | B)?`",
                        )
            case ast.Conjunction():
                self._operands(unit.operands, "&")
                self._many(unit, "&")
            case ast.AnyOrder():
                self._operands(unit.operands, "AND")
                self._many(unit, "AND")
                if in_front is not None and in_front.operator == ",":
                    self._strict_any_order(unit, in_front)
        return False

    def _many(self, group: ast.Conjunction | ast.AnyOrder, operator: str) -> None:
        count = sum(isinstance(node, ast.GpmRef) for node in ast.walk(group))
        if count > MAX_CONJOINED:
            self._error(
                f"this {operator} group names {count:,} GPMs; the maximum is {MAX_CONJOINED}",
                group.span,
                "combine several of the GPMs into one, or join some of them by `:`",
            )

    def _strict_any_order(self, unit: ast.AnyOrder, in_front: ast.Step) -> None:
        self._error(
            "`,` cannot precede an AND group: its events occur at several instants, in any "
            "order, so not all of them can be the very next event",
            in_front.operator_span,
            "write `;` for the next such events or `:` for any later ones",
            unit.span,
            "the AND group",
        )

    def _operands(self, operands: tuple[ast.Unit, ...], operator: str) -> None:
        for operand in operands:
            match operand:
                case ast.GpmRef():
                    pass
                case ast.Conjunction() | ast.Disjunction():
                    self._operands(operand.operands, operator)
                case ast.AnyOrder() if operator == "&":
                    self._error(
                        "AND cannot be nested in `&`: the operands of `&` occur at one timestamp, "
                        "the operands of AND in any order",
                        operand.span,
                        "write `&` in its place, or join all operands with AND",
                    )
                case ast.AnyOrder():
                    self._error(
                        "AND cannot be nested in another AND group",
                        operand.span,
                        "drop the inner parentheses: `(A AND B AND C)`, or state the "
                        "alternatives with `|`",
                    )
                case ast.Sequence():
                    self._operand_sequence(operand, operator)

    def _operand_sequence(self, operand: ast.Sequence, operator: str) -> None:
        what = excerpt(self.text, operand.span, "this")
        if len(operand.steps) > 1:
            kind = "a sequence"
            hint = f"move the sequence out of the {operator} group, or name single GPMs in it"
        elif operand.steps[0].negated:
            kind = "a negation"
            hint = f"move the negation to the enclosing sequence: `A; !N; (B {operator} C)`"
        elif operand.steps[0].quantifier is None:
            kind = "a step with a bound"
            hint = f"write the bound after the whole group: `(A {operator} B) WITHIN 5 SECONDS`"
        else:
            kind = "a step with a quantifier"
            hint = f"drop the quantifier, or write it after the whole group: `(A {operator} B)+`"
        self._error(
            f"{what} is {kind}, but an operand of `{operator}` must be a GPM or a group of "
            "GPMs joined by `&` or `|`",
            operand.span,
            hint,
        )


def _is_optional(step: ast.Step) -> bool:
    quantifier = step.quantifier
    return quantifier is not None and quantifier.least == 0 and quantifier.most != 0


def _plain(what: str) -> str:
    return what.strip("`") if what.startswith("`") else "N"


# ------------------------------------------------------------------ the end of the sequence


def _open_end(query: ast.Query, sequence: ast.Sequence) -> Iterator[Diagnostic]:
    """Negated and optional steps at the end of the sequence, under a window that never closes."""
    within = query.within
    if within is None or within.kind.is_of_time:
        return
    window = within.kind.written("n")
    for step in _last_steps(sequence):
        kind = "negation" if step.negated else "optional step"
        yield Diagnostic(
            f"a pattern that ends with {'a' if step.negated else 'an'} {kind} waits until its "
            f"window closes, but a window of WITHIN {window} never closes by time",
            step.span,
            "write a window in units of time, such as `WITHIN 10 MINUTES`, or add a mandatory "
            "step after this one",
            within.span,
            "the window",
        )


def _last_steps(sequence: ast.Sequence) -> Iterator[ast.Step]:
    """The negated and optional steps with which the sequence may end."""
    for step in reversed(sequence.steps):
        if step.negated and step.bound is not None:
            return  # the match comes out at the deadline
        if step.negated:
            yield step
            continue
        if _is_optional(step) and step.bound is None:
            yield step
        yield from _last_of_unit(step.unit)
        if not _is_optional(step):
            return


def _last_of_unit(unit: ast.Unit) -> Iterator[ast.Step]:
    if isinstance(unit, ast.Sequence):
        yield from _last_steps(unit)
    elif isinstance(unit, ast.Disjunction):
        for side in unit.operands:
            yield from _last_of_unit(side)
