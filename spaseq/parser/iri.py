"""Relative IRI references → absolute ones: RFC 3986 section 5, for any scheme.

`urllib.parse.urljoin` resolves only schemes it lists (not `urn:`, `tag:` or private ones) and
deviates from the RFC for the empty reference and for dot segments. Characters are never changed:
SPARQL 1.1 (section 4.1.1.2) forbids normalisation.
"""

from __future__ import annotations

import re
from functools import cache
from ipaddress import IPv6Address

# RFC 3986 appendix B: scheme, authority, path, query, fragment.
_PARTS = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")

# RFC 3987 section 2.2: `ucschar`, and `iprivate`, which is allowed in the query component only.
_LETTERS = "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF" + "".join(
    f"\\U000{plane:X}{'1' if plane == 14 else '0'}000-\\U000{plane:X}FFFD" for plane in range(1, 15)
)
_PRIVATE = "\\uE000-\\uF8FF\\U000F0000-\\U000FFFFD\\U00100000-\\U0010FFFD"


@cache
def _syntax(ascii_only: bool) -> re.Pattern[str]:
    """An absolute IRI (RFC 3987 section 2.2); the non-ASCII ranges are slow to compile."""
    letters, private = ("", "") if ascii_only else (_LETTERS, _PRIVATE)
    plain = rf"A-Za-z0-9\-._~!$&'()*+,;=%{letters}"
    return re.compile(
        rf"[A-Za-z][A-Za-z0-9+.\-]*:"
        rf"(?://(?:[{plain}:]*@)?(?:\[(?P<address>[^\]]*)\]|[{plain}]*)(?::[0-9]*)?(?=[/?#]|\Z)|(?!//))"
        rf"[{plain}:@/]*(?:\?[{plain}{private}:@/?]*)?(?:\#[{plain}:@/?]*)?"
    )


def is_absolute(iri: str) -> bool:
    """Whether the reference has a scheme."""
    return _ABSOLUTE.match(iri) is not None


def flaw(iri: str) -> str:
    """Why an absolute reference is not a valid IRI, for a hint; empty if it is valid."""
    if _BAD_PERCENT.search(iri):
        return "'%' must be followed by two hexadecimal digits (write %25 for the sign itself)"
    match = _syntax(iri.isascii()).fullmatch(iri)
    if match is None:
        return (
            "an IRI has the form scheme://host:port/path?query#fragment; other characters are "
            "%-encoded"
        )
    if match["address"] is not None:
        try:
            IPv6Address(match["address"])
        except ValueError:
            return "brackets around a host must contain an IPv6 address"
    return ""


def resolve(reference: str, base: str) -> str:
    """Resolve `reference` against the absolute IRI `base` (RFC 3986 section 5.2.2).

    A reference with a scheme is returned unchanged, dot segments included, so that adding a
    BASE to a query changes no absolute IRI.
    """
    if is_absolute(reference):
        return reference
    _, authority, path, query, fragment = _split(reference)
    scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is not None:
        return _join(scheme, authority, _without_dots(path), query, fragment)
    if not path:
        return _join(
            scheme, base_authority, base_path, base_query if query is None else query, fragment
        )
    if not path.startswith("/"):
        if base_authority is not None and not base_path:
            path = "/" + path
        else:
            path = base_path[: base_path.rfind("/") + 1] + path
    return _join(scheme, base_authority, _without_dots(path), query, fragment)


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    assert match is not None  # the last two components match any text
    return match[1], match[2], match[3], match[4], match[5]


def _join(
    scheme: str | None, authority: str | None, path: str, query: str | None, fragment: str | None
) -> str:
    out = f"{scheme}:" if scheme is not None else ""
    if authority is not None:
        out += f"//{authority}"
    out += path
    if query is not None:
        out += f"?{query}"
    if fragment is not None:
        out += f"#{fragment}"
    return out


def _without_dots(path: str) -> str:
    """Remove dot segments (RFC 3986 section 5.2.4)."""
    if "." not in path:
        return path
    rooted = path.startswith("/")
    out: list[str] = []
    segments = path.split("/")
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == ".":
            if last:
                out.append("")
        elif segment == "..":
            if len(out) > rooted:
                out.pop()
            if last:
                out.append("")
        else:
            out.append(segment)
    if rooted and (not out or out[0]):
        out.insert(0, "")
    return "/".join(out)


RELATIVE = "urn:relative:"
UNDECLARED = "urn:undeclared:"


def is_stand_in(iri: str) -> bool:
    """Whether an IRI is the placeholder of one that was reported as invalid."""
    return iri.startswith((RELATIVE, UNDECLARED))
