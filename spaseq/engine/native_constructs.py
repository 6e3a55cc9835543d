"""The queries whose matches become events of a registered stream in compiled code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyoxigraph as ox

from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.construction import Construction
from spaseq.engine.native._matches import ConstructMaker
from spaseq.engine.native.query_run import NativeRun
from spaseq.gpm.program import constant
from spaseq.nfa.registers import RegisterFile
from spaseq.parser import ast
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Term, triple_of
from spaseq.rdf.native._terms import text_of


def construct_maker(
    native: NativeRun,
    compiled: CompiledQuery,
    registers: RegisterFile,
    errors: Sequence[ErrorCount],
) -> ConstructMaker | None:
    """The maker of the matches of a query that registers a stream; None if Python creates them.

    Python creates matches that come later than their last event, depend on each other by more than
    their order, can be duplicates, or have steps of several events, and those whose template has
    reified triples. `errors` counts those of the triples of the template.
    """
    plan, automaton = compiled.plan, compiled.automaton
    output = plan.output
    if plan.registers_stream is None or output.grouping is not None or output.limit is not None:
        return None
    if automaton.waits or automaton.expires or automaton.timed or automaton.ambiguous:
        return None
    if plan.emit != "ALL" or plan.skip_to is not None or output.distinct:
        return None
    if any(atom.kind != "single" for atom in automaton.atoms):
        return None
    if any(triple.of is not None for triple in output.template):
        return None
    columns = [(name, registers.number[register]) for name, register in output.template_registers]
    if any(plan.registers[number].kind not in ("value", "last") for _, number in columns):
        return None
    nodes = (node.label for node in ast.walk(output.template) if isinstance(node, ast.BlankNode))
    blanks = {label: number for number, label in enumerate(dict.fromkeys(nodes))}

    def text(node: object) -> bytes | str | int:
        if isinstance(node, ast.Var):
            return node.name
        if isinstance(node, ast.BlankNode):
            return blanks[node.label]
        assert isinstance(node, ast.Constant)
        return text_of(constant(node))

    triples = [
        tuple(map(text, (triple.subject, triple.predicate, triple.object)))
        for triple in output.template
    ]
    maker = native.maker_of_events(ConstructMaker)
    names = tuple(name for name, _ in columns)
    construction = Construction(output.template, names, errors)
    maker.set_template(native.decoder(columns), triples, partial(_graph, construction, names))
    return maker


def _graph(
    construction: Construction, names: Sequence[str], values: Mapping[str, Term | None], number: int
) -> tuple[ox.Triple, ...]:
    solution = [values.get(name) for name in names]
    return tuple(map(triple_of, construction.graph(solution, number)))
