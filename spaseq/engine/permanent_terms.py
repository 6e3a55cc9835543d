"""Terms that become permanent while partial matches hold them, and so change their numbers.

A term of an event has a number in the window of terms; a constant of a query has a permanent one.
When a query is added whose constant is a term of the window, later events with this term have the
permanent number. States that hold the old number are rebuilt before the next event.

Cost: one step per query, and the size of the states if the window has such a term.
"""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.engine.instants import QueryRun
from spaseq.gpm.matchers import Matchers
from spaseq.rdf.event import Term
from spaseq.rdf.native._terms import WindowTerms, text_of


def renumber(queries: Iterable[QueryRun], matchers: Matchers, known: int) -> None:
    """Rebuild the automata that hold terms which have become permanent.

    Args:
        queries: The states.
        matchers: The matchers that they use.
        known: The version of the dictionary that the states know.
    """
    dictionary = matchers.dictionary
    more = [dictionary.term(number) for number in range(known, dictionary.version)]
    texts = list(map(text_of, more))
    held: dict[WindowTerms, set[Term]] = {}
    for query in queries if more else ():
        step = query.native.step
        step.forget_encoded()
        if step.window not in held:
            has = map(step.window.has, texts)
            held[step.window] = {term for term, it in zip(more, has, strict=True) if it}
        if held[step.window] and not held[step.window].isdisjoint(query.state().terms):
            query.renew(matchers)
