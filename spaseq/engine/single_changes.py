"""Changes of one query of a run, each at the cost of that query: adding, replacing, removing.

These changes edit what the run has for its queries: the matchers, the numbers of patterns, the
names and the states (`spaseq.engine.run_queries`). They visit no other query. What all queries
share is built again when the next event comes, once for all changes before it: the tables of the
compiled loop, the triples that readers keep, states with terms that have become permanent, and
states whose name is that of an equal query that has left.

A query that registers a stream, or reads a registered one, changes the order of the queries, so it
is changed by a `Change`. So are queries of templates, and queries under entailment, beside makers
that write matches, and with patterns that need new matchers (docs/architecture.md).

Cost: a copy of a few tuples of references besides that of the query, and of its state if the state
continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias, get_args

from spaseq.engine import changes
from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.listing import Entry, Listed
from spaseq.engine.pattern_numbers import PatternNumbers
from spaseq.errors import ChangeError
from spaseq.gpm.pattern import Pattern
from spaseq.parser import ast
from spaseq.records import dataclass


def added(
    run: Evaluation, name: str, program: CompiledQueries, new_streams: bool
) -> Addition | changes.Change:
    """The run with another query after the others.

    Args:
        run: The run.
        name: The name of the query.
        program: A program of one query, in which the variables of the run are not bound yet.
        new_streams: Whether it may read streams that the run does not have.

    Raises:
        ArgumentError: if the name is empty, and for anything but a program.
        ChangeError: if the query does not fit the run.
    """
    program, unbound = changes.bound_program(run, program)
    changes.check_new_name(run, name)
    query = changes.only_query(program, name)
    if not _is_direct(run, query):
        return changes.added(run, name, program, unbound, new_streams)
    if not new_streams:
        changes.check_known(run, query.plan, ())
    return Addition(_New(run, program, unbound, query))


def replaced(
    run: Evaluation,
    name: str,
    program: CompiledQueries,
    state: changes.StatePolicy,
    new_streams: bool,
) -> Replacement | changes.Change:
    """The run with another query in place of the one with a name.

    Args:
        run: The run.
        name: The name of both.
        program: A program of one query, in which the variables of the run are not bound yet.
        state: What happens to the partial matches of the former query.
        new_streams: As for `added`.

    Raises:
        ArgumentError: for anything but a program.
        ChangeError: if there is no query of the name, if the new query does not fit the run, or if
            it cannot continue the state of the old one.
    """
    program, unbound = changes.bound_program(run, program)
    number = _alone(run, name)
    if number is None or state not in get_args(changes.StatePolicy):
        return changes.replaced(run, {name: (program, unbound)}, state, new_streams)
    query = changes.only_query(program, name)
    if not _is_direct(run, query):
        return changes.replaced(run, {name: (program, unbound)}, state, new_streams)
    if state == "drain":
        changes.check_begins(run.queries[number])
    elif state == "keep":
        changes.check_continues(name, run.program.queries[number], query)
    if not new_streams:
        changes.check_known(run, query.plan, ())
    return Replacement(_New(run, program, unbound, query), state)


def removed(run: Evaluation, name: str, drain: bool = False) -> Removal | changes.Change:
    """The run without a query; with `drain`, the query remains until its partial matches end.

    Raises:
        ChangeError: if there is no such query, if another query reads the stream that it registers,
            or if it is the only query and does not drain.
    """
    number = _alone(run, name)
    if number is None:
        return changes.removed(run, name, drain)
    if drain:
        changes.check_begins(run.queries[number])
    elif len(run.queries) == 1:
        raise ChangeError(f"{name} is the only query of the run, which needs one")
    return Removal(run, name, drain)


def _is_direct(run: Evaluation, query: CompiledQuery) -> bool:
    """Whether a new query neither registers a stream nor reads a registered one."""
    written, plan = run.listed.written, query.plan
    return plan.registers_stream is None and written.isdisjoint(plan.streams)


def _alone(run: Evaluation, name: str) -> int | None:
    """The number of a query that changes alone; None if a `Change` must change it."""
    if name not in run.listed.names or run.entail is not None or run.formatting is not None:
        return None
    number = run.listed.names.executed(name)
    if number is None or not run.direct[number]:
        return None
    return number if run.queries[number].plan.registers_stream is None else None


@dataclass(frozen=True, slots=True)
class _New:
    """A query that is to begin in a run."""

    run: Evaluation
    program: CompiledQueries
    """A program of the query."""
    unbound: ast.Query
    """Its source before variables were bound."""
    compiled: CompiledQuery
    """The query with the name that it has in the run."""

    @property
    def name(self) -> str:
        return self.compiled.plan.name


@dataclass(frozen=True, slots=True)
class _Begun:
    """A query that has begun, before it is one of the run."""

    one: Listed
    new: Mapping[int, Pattern]
    """Its patterns that the run does not have, by number."""
    own: Mapping[int, Pattern]
    """Its patterns in the program as it was written, by number."""


def _begun(new: _New, state: str = "fresh") -> _Begun | None:
    """Begin a new query; None if all queries must begin again.

    With the `state` "keep", it continues that of the query with its name.
    """
    run, program, query = new.run, new.program, new.compiled
    uses, public, name = run.listed.pattern_uses, run.public, query.plan.name
    numbers = PatternNumbers(run, uses.total, uses.unused)
    compiled = numbers.numbered(query, program, False)
    first = len(public.patterns)
    written, own = query.renumbered(first.__add__), dict(enumerate(program.patterns, first))
    before = run.listed.names.executed(name) if name in run.listed.names else None
    kept = run.queries[before] if before is not None and state == "keep" else None
    entry = Entry(program.sources[0], name, new.unbound, compiled, None, kept)
    queries = run.program.queries
    other = queries[0] if before is None or before else queries[-1]
    if before is not None and len(queries) == 1 and state != "drain":
        other = compiled
    begun = run.begin(entry, other, numbers.new)
    if begun is None:
        return None
    entry = replace(entry, run=begun, kept=None)
    return _Begun(Listed(entry.source, name, new.unbound, written, entry), numbers.new, own)


def _draining(run: Evaluation, name: str) -> _Begun:
    """Begin the version of a query that drains, under a name of its own."""
    names = run.listed.names
    number, place, position = names.executed(name), names.number(name), names.position(name)
    assert number is not None
    compiled, public = run.program.queries[number], run.public.queries[place]
    shown = compiled.plan.shown
    entry = Entry(
        changes.unregistered(run.public.sources[position]),
        changes.draining_name(shown, names),
        changes.unregistered(run.listed.unbound[position]),
        _named(compiled, changes.draining_name(shown, names), shown),
        None,
        run.queries[number],
        drains=True,
    )
    begun = run.begin(entry, compiled, {})
    assert begun is not None, "the run has matchers for its patterns"
    entry = replace(entry, run=begun, kept=None)
    written = _named(public, entry.name, shown)
    return _Begun(Listed(entry.source, entry.name, entry.unbound, written, entry), {}, {})


def _named(query: CompiledQuery, name: str, shown: str) -> CompiledQuery:
    return replace(query, plan=replace(query.plan, name=name, shown_as=shown))


@dataclass(frozen=True, slots=True)
class Addition:
    """A query that is added after those of a run; `apply` adds it."""

    query: _New

    def apply(self) -> None:
        """Add the query.

        Raises:
            KbError, LimitExceeded, ChangeError: if the run cannot have it; nothing has changed.
        """
        new = self.query
        begun = _begun(new)
        if begun is None:
            changes.added(new.run, new.name, new.program, new.unbound, True).apply()
        else:
            new.run.append(begun.one, begun.new, begun.own)


@dataclass(frozen=True, slots=True)
class Replacement:
    """A query in place of another one of its name; `apply` replaces it."""

    query: _New
    state: changes.StatePolicy
    """What happens to the partial matches of the former query."""

    def apply(self) -> None:
        """Replace the query.

        Raises:
            KbError, LimitExceeded, ChangeError: if the run cannot have it; nothing has changed.
        """
        new, run = self.query, self.query.run
        draining = _draining(run, new.name) if self.state == "drain" else None
        begun = _begun(new, self.state)
        if begun is None:
            programs = {new.name: (new.program, new.unbound)}
            changes.replaced(run, programs, self.state, True).apply()
            return
        if draining is not None:
            run.append(draining.one, draining.new, draining.own)
        run.exchange(begun.one, begun.new, begun.own)


@dataclass(frozen=True, slots=True)
class Removal:
    """A query that is removed from a run; `apply` removes it."""

    run: Evaluation
    name: str
    drains: bool
    """Whether it first continues its partial matches, under another name."""

    def apply(self) -> None:
        """Remove the query."""
        draining = _draining(self.run, self.name) if self.drains else None
        if draining is not None:
            self.run.append(draining.one, draining.new, draining.own)
        self.run.delete(self.name)


SingleChange: TypeAlias = Addition | Replacement | Removal
