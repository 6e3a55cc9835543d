"""Language-tagged literals ↔ text and tag, where the tag includes the base direction.

The tag is the part after `@` in N-Quads, in lower case: `en`, or `ar--rtl` with a direction. Two
literals are equal if and only if texts and tags are. Source: RDF 1.2 Concepts, section 3.4.
"""

from __future__ import annotations

import pyoxigraph as ox

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
LANG_STRING = ox.NamedNode(RDF + "langString")
DIRECTED_STRING = ox.NamedNode(RDF + "dirLangString")
_MARK = "--"


def tagged_literal(text: str, tag: str) -> ox.Literal:
    """The literal with a text and a tag.

    Raises:
        ValueError: if the tag is invalid.
    """
    language, _, direction = tag.partition(_MARK)
    if not direction:
        return ox.Literal(text, language=language)
    return ox.Literal(text, language=language, direction=ox.BaseDirection(direction))


def tag_of(literal: ox.Literal) -> str:
    """The tag of a literal that has a language."""
    language, direction = literal.language, literal.direction
    assert language is not None
    return tag_with(language, None if direction is None else direction.value)


def tag_with(language: str, direction: str | None) -> str:
    """The tag of a language and a base direction; None for no direction."""
    return language if direction is None else f"{language}{_MARK}{direction}"


def language_of(tag: str) -> str:
    """The language of a tag."""
    return tag.partition(_MARK)[0]


def direction_of(tag: str) -> str:
    """The base direction of a tag, `ltr` or `rtl`; empty for none."""
    return tag.partition(_MARK)[2]


def tagged_datatype(tag: str) -> ox.NamedNode:
    """The datatype of the literals with a tag."""
    return DIRECTED_STRING if _MARK in tag else LANG_STRING
