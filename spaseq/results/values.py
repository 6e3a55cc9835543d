"""The variables of matches as plain Python values, and matches as a line of text and as HTML.

The values are those of `spaseq.rdf.plain`. A match has the variables of its query's SELECT, whether
bound or not, so all matches of a query have the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from spaseq.plan.wording import did_you_mean, listing
from spaseq.rdf.event import Term, Timestamp, n_triples
from spaseq.rdf.native._values import decode
from spaseq.rdf.plain import LangString, plain
from spaseq.rdf.time import json_value

if TYPE_CHECKING:
    from spaseq.results.native._match import Match

_WIDEST = 60
"""The most characters of a value in a line."""
_MOST = 12
"""The most variables in a line."""


def names_of(match: Match) -> tuple[str, ...]:
    """The variables of a match, in the order of the SELECT."""
    return match.variables or tuple(match.bindings)


def value_in(match: Match, name: str) -> Any:
    """The plain value of a variable; None if it is unbound.

    Raises:
        KeyError: if the match has no such variable.
    """
    term = match.bindings.get(name)
    if term is not None:
        return plain(decode(term))
    names = names_of(match)
    if name in names:
        return None
    raise KeyError(_missing(match, name, names))


def no_attribute(match: Match, name: str) -> str:
    """The message for an attribute that a match does not have, with what to write instead."""
    message = f"a Match has no attribute {name!r}"
    if name in ("get", "items"):
        return f"{message}; write match.values.{name}(…)"
    if not name.startswith("_") and name in names_of(match):
        return f'{message}; the value of ?{name} is match["{name}"]'
    return message


def values_in(match: Match) -> dict[str, Any]:
    """All variables → plain values; None for unbound variables."""
    bindings = match.bindings
    return {name: _value(bindings.get(name)) for name in names_of(match)}


def _value(term: Term | None) -> Any:
    return None if term is None else plain(decode(term))


def _missing(match: Match, name: object, names: tuple[str, ...]) -> str:
    if not isinstance(name, str):
        return f"a variable is given by its name, a str, and not by {name!r}"
    start = f"a match of {match.query} has no variable {name}"
    if names:
        bare = name.lstrip("?$")
        marked = "names are written without a question mark"
        hint = marked if bare in names else did_you_mean(bare, names)
        return f"{start}; it has {listing(names)}" + (f" ({hint})" if hint else "")
    if match.boolean is not None:
        return f"{start}: the result of an ASK is in match.boolean"
    if match.graph is not None:
        return f"{start}: the result of a CONSTRUCT is in match.graph"
    return f"{start}; it has none"


def one_line(match: Match) -> str:
    """A match as one line for people; long values and long lists are cut."""
    span = f"from {json_value(match.start)} to {json_value(match.end)}"
    return f"<Match of {match.query!r} {span}: {', '.join(_parts(match))}>"


def _parts(match: Match) -> list[str]:
    if match.boolean is not None:
        return [str(match.boolean)]
    if match.graph is not None:
        count = len(match.graph)
        return [f"{count} triple{'' if count == 1 else 's'}"]
    values = values_in(match)
    parts = [f"{name}={_cut(_text(value))}" for name, value in list(values.items())[:_MOST]]
    if len(values) > _MOST:
        parts.append(f"… ({len(values)} variables)")
    return parts or ["no variables"]


def _text(value: object) -> str:
    """A value as text without line breaks: strings in quotes, terms in the syntax of N-Triples."""
    if isinstance(value, str):
        return repr(value)
    text = _bare(value)
    return text if text.isprintable() else repr(text)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def cells_of(match: Match) -> dict[str, str]:
    """A match as texts by column, for a table of several matches; long texts are cut."""
    if match.boolean is not None:
        return {"boolean": str(match.boolean)}
    if match.graph is not None:
        triples = "\n".join(f"{s} {p} {n_triples(o)}" for s, p, o in match.graph)
        return {"graph": _cut(triples)}
    return {name: _cut(_shown(value)) for name, value in values_in(match).items()}


def time_text(time: Timestamp) -> str:
    """A time as text that may be broken between the date and the time of day."""
    return str(json_value(time)).replace("T", " ")


def html_table(match: Match) -> str:
    """A match as a table of HTML, a row for each variable or triple."""
    from html import escape

    if match.boolean is not None:
        rows = [("", str(match.boolean))]
    elif match.graph is not None:
        rows = [("", f"{s} {p} {n_triples(o)}") for s, p, o in match.graph]
    else:
        rows = [(name, _shown(value)) for name, value in values_in(match).items()]
    caption = f"{match.query}, {json_value(match.start)} to {json_value(match.end)}"
    cells = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{cells}</tbody></table>"


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, LangString):
        return f"{value}@{value.tag}"
    return _bare(value)


def _bare(value: object) -> str:
    """A value as text; `str` of a triple term lacks its brackets."""
    return n_triples(value) if isinstance(value, ox.Triple) else str(value)
