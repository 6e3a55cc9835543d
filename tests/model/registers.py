"""The register file of the run in Python: the engine's, with further methods."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.nfa.automaton import Bound
from spaseq.nfa.registers import Environment, RegisterFile
from spaseq.plan.references import iteration_register
from spaseq.rdf.event import Term


class Registers(RegisterFile):
    """The registers of one plan."""

    def key(self, env: Environment) -> tuple[Term | None, ...]:
        """The partition of a partial match; empty without `PARTITION BY`."""
        return tuple(env[number] for number in self.partition)

    def within(self, bounds: Sequence[Bound], env: Environment) -> bool:
        """Whether the iteration numbers satisfy a link's bounds."""
        for bound in bounds:
            number = env[self.number[iteration_register(bound.unit)]]
            if number < bound.least or (bound.below is not None and number >= bound.below):
                return False
        return True
