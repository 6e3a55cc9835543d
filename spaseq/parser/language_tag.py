"""Which language tags are well-formed: RFC 5646 section 2.1."""

from __future__ import annotations

import re
from functools import cache

_TAG = (
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})"  # language, with extended language subtags
    r"(?:-[a-z]{4})?"  # script
    r"(?:-(?:[a-z]{2}|[0-9]{3}))?"  # region
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"  # variants
    r"(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*"  # extensions
    r"(?:-x(?:-[a-z0-9]{1,8})+)?"  # private use
    r"|x(?:-[a-z0-9]{1,8})+"
)
_IRREGULAR = frozenset(
    (
        "en-gb-oed",
        "i-ami",
        "i-bnn",
        "i-default",
        "i-enochian",
        "i-hak",
        "i-klingon",
        "i-lux",
        "i-mingo",
        "i-navajo",
        "i-pwn",
        "i-tao",
        "i-tay",
        "i-tsu",
        "sgn-be-fr",
        "sgn-be-nl",
        "sgn-ch-de",
    )
)


@cache
def _tag() -> re.Pattern[str]:
    """Compiled when the first tag is checked, since most queries have none."""
    return re.compile(_TAG)


def is_language_tag(tag: str) -> bool:
    """Whether the tag is well-formed, in any case; whether it is registered is not checked."""
    lower = tag.lower()
    return _tag().fullmatch(lower) is not None or lower in _IRREGULAR
