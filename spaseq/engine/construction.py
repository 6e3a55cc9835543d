"""The template of a CONSTRUCT, compiled once: solutions → graphs.

Each term of the template has a slot in a list. The slots of constants are filled once. Each
solution fills the slots of variables, and each graph the slots of its blank nodes and triple terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyoxigraph as ox

from spaseq.gpm.program import constant
from spaseq.parser import ast
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Fact, Term, depth_of
from spaseq.rdf.syntax import MAX_NESTED_TRIPLES


class Construction:
    """The graphs of a template.

    Args:
        template: The triples of the template. A triple term precedes the triples that contain it.
        variables: Its variables, in the order of the values in a solution.
        errors: Per triple: counts the solutions with a term that cannot be where it is.
    """

    def __init__(
        self,
        template: Sequence[ast.Triple],
        variables: Sequence[str],
        errors: Sequence[ErrorCount],
    ):
        self._slots: dict[object, int] = {}
        for name in variables:
            self._slot(ast.Var(name))
        wholes = {triple.of.label for triple in template if triple.of is not None}
        nodes = (node.label for node in ast.walk(template) if isinstance(node, ast.BlankNode))
        self._blanks = [
            self._slot(ast.BlankNode(label))
            for label in dict.fromkeys(nodes)
            if label not in wholes
        ]
        self._triples = [
            (
                self._slot(triple.subject),
                self._slot(triple.predicate),
                self._slot(triple.object),
                None if triple.of is None else self._slot(triple.of),
                count,
            )
            for triple, count in zip(template, errors, strict=True)
        ]
        self._fixed: list[Term | None] = [
            constant(node) if isinstance(node, ast.Constant) else None
            for node in list(self._slots)[len(variables) :]
        ]

    def _slot(self, node: object) -> int:
        return self._slots.setdefault(node, len(self._slots))

    def graph(self, solution: Sequence[Term | None], number: int) -> tuple[Fact, ...]:
        """The triples of a solution, except those that are not valid RDF triples.

        Args:
            solution: The values of the variables.
            number: The number of the match, which the labels of its blank nodes contain. The graph
                of 0 is only compared with others, and does not count errors.
        """
        return tuple(dict.fromkeys(self._facts(solution, number)))

    def _facts(self, solution: Sequence[Term | None], number: int) -> Iterator[Fact]:
        terms = [*solution, *self._fixed]
        for n, slot in enumerate(self._blanks):
            terms[slot] = ox.BlankNode(f"m{number}n{n}")
        for first, second, third, whole, count in self._triples:
            subject, predicate, object_ = terms[first], terms[second], terms[third]
            if (
                subject is not None
                and object_ is not None
                and not isinstance(subject, ox.Literal | ox.Triple)
                and isinstance(predicate, ox.NamedNode)
            ):
                if whole is None:
                    yield subject, predicate, object_
                elif depth_of(object_) < MAX_NESTED_TRIPLES:
                    terms[whole] = ox.Triple(subject, predicate, object_)
                count.has_value = True
            elif number and subject is not None and predicate is not None and object_ is not None:
                is_subject = isinstance(subject, ox.Literal | ox.Triple)
                place, term = ("subject", subject) if is_subject else ("predicate", predicate)
                count.see(None, lambda place=place, term=term: {place: term})  # type: ignore[misc]
