"""SPARQL's functions on strings, and its regular expressions.

Arguments are strings, with or without a language tag; any other argument is an error, None.
`regular` compiles regular expressions; pyoxigraph matches the expressions that it refuses. Source:
SPARQL 1.1 section 17.4.3.
"""

from __future__ import annotations

from urllib.parse import quote

from spaseq.gpm.python import pyoxigraph_call, regular
from spaseq.rdf.limits import MOST_TEXT_BYTES, LimitReached
from spaseq.rdf.native._values import (
    INTEGER,
    LANG,
    STRING,
    WIDE,
    Value,
    add,
    boolean,
    decode,
    integer,
    lang_string,
    string,
)


def _text_like(text: str, model: Value) -> Value:
    """A string with the language tag of `model`, if it has one."""
    return lang_string(text, model.form) if model.kind == LANG else string(text)


def _check_size(characters: int) -> None:
    """Refuse to make a text that is too long, before it is made.

    Raises:
        LimitReached: for more than `MOST_TEXT_BYTES`.
    """
    if characters > MOST_TEXT_BYTES:
        raise LimitReached("text")


def _is_text(value: Value) -> bool:
    return value.kind in (STRING, LANG)


def _compatible(text: Value, other: Value) -> bool:
    """SPARQL's argument compatibility rules."""
    if not (_is_text(text) and _is_text(other)):
        return False
    return other.kind == STRING or (text.kind == LANG and text.form == other.form)


def strlen(value: Value) -> Value | None:
    """STRLEN."""
    return integer(len(value.text)) if _is_text(value) else None


def substr(value: Value, start: Value, length: Value | None = None) -> Value | None:
    """SUBSTR."""
    if not (_is_text(value) and _is_whole(start) and (length is None or _is_whole(length))):
        return None
    begin = _offset(value.text, start)
    end = len(value.text) if length is None else _offset(value.text, add(start, length))
    return _text_like(value.text[begin:end], value)


def _is_whole(value: Value) -> bool:
    return value.kind == INTEGER or (value.kind == WIDE and value.form == "integer")


def _offset(text: str, place: Value | None) -> int:
    """The number of characters before a position, which is an integer and counted from 1."""
    number = None if place is None else place.number
    if number is None or number > len(text):
        return len(text)
    return max(int(number) - 1, 0) if number > 0 else 0


def ucase(value: Value) -> Value | None:
    """UCASE."""
    return _text_like(value.text.upper(), value) if _is_text(value) else None


def lcase(value: Value) -> Value | None:
    """LCASE."""
    return _text_like(value.text.lower(), value) if _is_text(value) else None


def contains(text: Value, part: Value) -> Value | None:
    """CONTAINS."""
    return boolean(part.text in text.text) if _compatible(text, part) else None


def strstarts(text: Value, part: Value) -> Value | None:
    """STRSTARTS."""
    return boolean(text.text.startswith(part.text)) if _compatible(text, part) else None


def strends(text: Value, part: Value) -> Value | None:
    """STRENDS."""
    return boolean(text.text.endswith(part.text)) if _compatible(text, part) else None


def strbefore(text: Value, part: Value) -> Value | None:
    """STRBEFORE."""
    if not _compatible(text, part):
        return None
    before, found, _ = text.text.partition(part.text) if part.text else ("", "yes", "")
    return _text_like(before, text) if found else string("")


def strafter(text: Value, part: Value) -> Value | None:
    """STRAFTER."""
    if not _compatible(text, part):
        return None
    _, found, after = text.text.partition(part.text) if part.text else ("", "yes", text.text)
    return _text_like(after, text) if found else string("")


def concat(*values: Value) -> Value | None:
    """CONCAT."""
    if not all(map(_is_text, values)):
        return None
    _check_size(sum(len(value.text) for value in values))
    text = "".join(value.text for value in values)
    languages = {value.form if value.kind == LANG else None for value in values}
    language = languages.pop() if len(languages) == 1 else None
    return string(text) if language is None else lang_string(text, language)


def encode_for_uri(value: Value) -> Value | None:
    """ENCODE_FOR_URI."""
    return string(quote(value.text, safe="-_.~")) if _is_text(value) else None


def regex(text: Value, pattern: Value, flags: Value | None = None) -> Value | None:
    """REGEX."""
    if not _is_text(text) or pattern.kind != STRING:
        return None
    if flags is not None and flags.kind != STRING:
        return None
    given = regular.pattern_and_flags(pattern.text, "" if flags is None else flags.text)
    if given is None:
        return None
    test = regular.compiled(*given)
    if test is not None:
        return boolean(test(text.text))
    return _reference("REGEX", string(text.text), pattern, *(() if flags is None else (flags,)))


def _reference(function: str, *values: Value) -> Value | None:
    result = pyoxigraph_call.call(function, tuple(value.term for value in values))
    return None if result is None else decode(result)


def replace(
    text: Value, pattern: Value, replacement: Value, flags: Value | None = None
) -> Value | None:
    """REPLACE."""
    if not _is_text(text) or pattern.kind != STRING or replacement.kind != STRING:
        return None
    if flags is not None and flags.kind != STRING:
        return None
    given = "" if flags is None else flags.text
    change = regular.replacer(pattern.text, given, replacement.text)
    if change is not None:
        return _text_like(change(text.text), text)
    # pyoxigraph cannot be stopped. A text in which every 16th character is replaced must fit.
    _check_size(len(text.text) * len(replacement.text) // 16)
    rest = () if flags is None else (flags,)
    explicit = string(regular.explicit(replacement.text))
    return _reference("REPLACE", text, pattern, explicit, *rest)
