"""Queries added to a run one by one, each at the cost of its own compilation.

`Addition` extends what the run has for its queries: the matchers, the numbers of patterns, the
names and the states. It visits no other query. What all queries share is built again when the next
event comes, once for all queries that were added before it: the tables of the compiled loop, the
triples that readers keep, and states with terms that have become permanent.

A query that registers a stream, or reads a registered one, changes the order of the queries, so it
is added by a `Change`. So are queries under entailment, beside makers that write matches, and with
patterns that need new matchers (docs/architecture.md).

Cost: a copy of a few tuples of references besides that of the query.
"""

from __future__ import annotations

from spaseq.engine import changes
from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.pattern_numbers import PatternNumbers
from spaseq.parser import ast


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
    writes = query.plan.registers_stream is not None
    if writes or not run.written.isdisjoint(query.plan.streams):
        return changes.added(run, name, program, unbound, new_streams)
    if not new_streams:
        changes.check_known(run, query.plan, ())
    return Addition(run, name, program, unbound, query)


class Addition:
    """A query that is added after those of a run; `apply` adds it.

    Args:
        run: The run.
        name: The name of the query.
        program: A program of the query.
        unbound: Its source before variables were bound.
        query: The compiled query with the name that it has in the run.
    """

    def __init__(
        self,
        run: Evaluation,
        name: str,
        program: CompiledQueries,
        unbound: ast.Query,
        query: CompiledQuery,
    ):
        self._run = run
        self._name = name
        self._program = program
        self._unbound = unbound
        self._query = query

    def apply(self) -> None:
        """Add the query.

        Raises:
            KbError, LimitExceeded, ChangeError: if the run cannot have it; nothing has changed.
        """
        run, program = self._run, self._program
        unused = dict.fromkeys(reversed(run.program.unused)) if run.unused is None else run.unused
        numbers = PatternNumbers(run, dict(unused))
        compiled = numbers.numbered(self._query, program, False)
        executed = run.program.extended(compiled, program.sources[0], self._name, numbers.new)
        shared = run.shared.extended(executed, self._query, program, self._name)
        if not run.add(shared, self._unbound, numbers.new, numbers.unused):
            changes.added(run, self._name, program, self._unbound, True).apply()
