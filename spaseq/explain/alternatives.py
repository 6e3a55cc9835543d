"""A term that the data does not have → the terms it has in its place, and how they differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import pyoxigraph as ox

from spaseq.gpm.expression_errors import as_node, kind_of, shown_term
from spaseq.parser import ast
from spaseq.parser.format import term_text
from spaseq.rdf.event import Term
from spaseq.rdf.native import _values

SHOWN = 3
"""The maximum number of values in a message."""


def instead_of(wanted: Term, seen: Counter[Term], prefixes: Mapping[str, str]) -> str:
    """The terms that the data has in place of a wanted one.

    If there is a term with the same text or number, only it is named, with the difference;
    otherwise the nearest IRI; otherwise the most frequent terms.
    """
    for term in seen:
        if isinstance(wanted, ox.Triple) or not isinstance(term, ox.NamedNode | ox.Literal):
            continue
        if term.value == wanted.value and (kinds := _kinds(wanted, term)):
            shown = term_text(as_node(term), prefixes)
            if isinstance(term, ox.Literal) and kind_of(term).startswith("a literal"):
                shown = str(term)
            return f"they have {shown}, {kinds}"
    if isinstance(wanted, ox.NamedNode):
        near = nearest_iri(wanted.value, [t.value for t in seen if isinstance(t, ox.NamedNode)])
        if near is not None:
            return f"did you mean {term_text(ast.Iri(near), prefixes)}?"
    equal = _equal_number(wanted, seen)
    if equal is not None:
        ours, theirs = (shown_term(term, prefixes) for term in (wanted, equal))
        return f"they have {theirs}, which equals {ours} in a FILTER but is another term"
    common = [shown_term(term, prefixes) for term, _ in seen.most_common(SHOWN)]
    more = ", …" if len(seen) > SHOWN else ""
    found = {_kinds(wanted, term) for term in seen}
    kinds = f", {next(iter(found))}" if len(found) == 1 and found != {""} else ""
    return f"they have {', '.join(common)}{more} there{kinds}"


def _kinds(wanted: Term, found: Term) -> str:
    """How the kind of a term differs from the kind of the wanted one; empty if it does not."""
    ours, theirs = kind_of(wanted), kind_of(found)
    return "" if ours == theirs else f"{theirs} instead of {ours}"


def _equal_number(wanted: Term, seen: Counter[Term]) -> Term | None:
    """A term of the same value as a wanted number."""
    value = _values.decode(wanted)
    if kind_of(wanted) != "a number":
        return None
    for term in seen:
        if kind_of(term) == "a number" and _values.equals(value, _values.decode(term)):
            return term
    return None


def nearest_iri(iri: str, known: Sequence[str]) -> str | None:
    """The known IRI that a person is most likely to have meant.

    This is an IRI that differs only in capitals, in `https`, or in `/`, `#` and `:`; otherwise one
    with the same local name in another namespace; otherwise one with a similar local name in the
    same namespace. None if none is near, or if the IRI itself is known.
    """

    def folded(text: str) -> str:
        return re.sub("[/#:]", "", text.casefold().replace("https://", "http://"))

    if iri in known:
        return None
    namespace, local = _parts(iri)
    for candidate in known:
        if folded(candidate) == folded(iri):
            return candidate
    for candidate in known:
        if _parts(candidate)[1].casefold() == local.casefold():
            return candidate
    siblings = {_parts(each)[1]: each for each in known if _parts(each)[0] == namespace}
    near = get_close_matches(local, siblings, n=1, cutoff=0.7)
    return siblings[near[0]] if near else None


def _parts(iri: str) -> tuple[str, str]:
    """The namespace and the local name of an IRI."""
    end = max(iri.rfind(sign) for sign in "#/:") + 1
    return iri[:end], iri[end:]
