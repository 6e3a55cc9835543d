"""Functions that this package does not compute itself → one pyoxigraph query.

For functions whose exact behaviour is not worth copying: unusual regular expressions, REPLACE,
casts between calendar fields. The arguments are triples of a new store, which holds every kind of
term; literals of the result are in canonical form. Results are cached, so the functions must not be
volatile. Cost: some 50 µs for a new call.
"""

from __future__ import annotations

from functools import lru_cache

import pyoxigraph as ox

from spaseq.rdf.event import Term

_HOME = ox.NamedNode("urn:spaseq:arguments")


@lru_cache(maxsize=1 << 14)
def call(function: str, arguments: tuple[Term, ...]) -> Term | None:
    """The value of `function(arguments)`, where `function` is SPARQL text; None: an error."""
    store = ox.Store()
    pattern = []
    for index, argument in enumerate(arguments):
        link = ox.NamedNode(f"urn:spaseq:argument:{index}")
        store.add(ox.Quad(_HOME, link, argument))
        pattern.append(f"{_HOME} {link} ?a{index} .")
    names = ", ".join(f"?a{index}" for index in range(len(arguments)))
    text = f"SELECT ({function}({names}) AS ?r) {{ {' '.join(pattern)} }}"
    solutions = store.query(text)
    assert isinstance(solutions, ox.QuerySolutions)
    for solution in solutions:
        result = solution["r"]
        return result if isinstance(result, Term) else None
    return None
