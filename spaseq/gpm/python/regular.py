"""SPARQL's regular expressions → tests and replacements of texts, in time linear in the text.

A pattern has the meaning of XPath, in detail the meaning of pyoxigraph's engine. That engine does
not backtrack, but each call costs a query. Therefore RE2, which does not backtrack either, compiles
patterns in the syntax that both share, and pyoxigraph matches all other patterns. Python's engine
is the fastest for short texts, but backtracks, so it is used only for patterns that it matches in
linear time.

Invariant: no test takes longer than text times pattern, whether the query or the data supplied the
pattern, and no compiled pattern occupies more than `MAX_PATTERN_BYTES`. RE2 and pyoxigraph refuse
larger patterns, which is an error in SPARQL. Source: XPath and XQuery Functions and Operators 3.1,
sections 5.6.1 and 5.6.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from spaseq.rdf.limits import MOST_TEXT_BYTES, LimitReached
from spaseq.rdf.native._terms import check

if TYPE_CHECKING:
    import re2

Test: TypeAlias = Callable[[str], bool]
Change: TypeAlias = Callable[[str], str]

MAX_PATTERN_BYTES = 1 << 20
"""The greatest size of a compiled pattern, including its automaton."""
MAX_CACHED_LENGTH = 1000
"""The greatest length of a cached pattern, in characters."""
MAX_CACHED_PATTERNS = 256

FLAGS = frozenset("simxq")
_SPACE = " \t\n\r"


def pattern_and_flags(pattern: str, flags: str) -> tuple[str, str] | None:
    """The pattern with the flags `q` and `x` applied, and the other flags.

    None for an unknown flag.
    """
    if not FLAGS.issuperset(flags):
        return None
    if "q" in flags:
        return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", pattern), "i" if "i" in flags else ""
    if "x" in flags:
        pattern = _without_space(pattern)
    return pattern, "".join(flag for flag in "sim" if flag in flags)


def _without_space(pattern: str) -> str:
    """The pattern without the white space outside of classes."""
    found = re.findall(r"\\.|\[\^?\]?(?:\\.|[^\\\]])*\]?|.", pattern, re.DOTALL)
    return "".join(part for part in found if part not in _SPACE)


def compiled(pattern: str, flags: str) -> Test | None:
    """The test of a pattern with flags among `s`, `i` and `m`; None: pyoxigraph matches it."""
    make = _cached if len(pattern) <= MAX_CACHED_LENGTH else _compiled
    return make(pattern, flags)


def _compiled(pattern: str, flags: str) -> Test | None:
    if _is_quick(pattern, flags):
        search = _quick(pattern, flags).search
        return lambda text: search(text) is not None
    import re2  # imported here and below: quick patterns, and most queries, need none

    try:
        translated = _Translation(pattern, "i" in flags).text
    except _OtherSyntaxError:
        return None
    if flags:
        translated = f"(?{flags}){translated}"
    try:
        matcher = re2.compile(translated, _options()).search
    except re2.error:
        return None
    return lambda text: matcher(text) is not None


def _quick(pattern: str, flags: str) -> re.Pattern[str]:
    """A quick pattern in the syntax of Python, whose `$` matches before a last line feed too."""
    end = pattern[:-1] + r"\Z" if re.search(r"(?<!\\)(?:\\\\)*\$$", pattern) else pattern
    return re.compile(end, re.ASCII | (re.DOTALL if "s" in flags else re.NOFLAG))


_cached = lru_cache(maxsize=MAX_CACHED_PATTERNS)(_compiled)


def _options(captures: bool = False) -> re2.Options:
    import re2

    options = re2.Options()
    options.max_mem = MAX_PATTERN_BYTES
    options.log_errors = False
    options.never_capture = not captures
    return options


# ------------------------------------------------------------------ replacements

_AT_ONCE = 1 << 20
"""Up to this length, a text is made in one call, which nothing interrupts."""
_PIECES = 4096
"""The pieces of a longer text that are joined together."""

_REFERENCE = re.compile(r"\$(?:([0-9]{1,3})(?![0-9A-Za-z_])|\{([0-9]{1,3})\})")
"""A group in a replacement. Other uses of the dollar sign are left to pyoxigraph."""
_DIGITS_AND_LETTER = re.compile(r"\$\$|\$([0-9]+)(?=[A-Za-z_])")


def explicit(replacement: str) -> str:
    """The replacement with `${1}T` for `$1T`, in which pyoxigraph reads the group `1T`."""
    return _DIGITS_AND_LETTER.sub(
        lambda found: found[0] if found[1] is None else f"${{{found[1]}}}", replacement
    )


def replacer(pattern: str, flags: str, replacement: str) -> Change | None:
    """The replacement of all matches of a pattern, `$1` being the first group of the match.

    None: pyoxigraph replaces them, for example if the pattern matches the empty text, since engines
    differ in where empty matches may follow other matches. A group that the pattern does not have
    is empty.
    """
    if len(pattern) + len(replacement) > MAX_CACHED_LENGTH:
        return _replacer(pattern, flags, replacement)
    return _cached_replacer(pattern, flags, replacement)


def _replacer(pattern: str, flags: str, replacement: str) -> Change | None:
    if "q" in flags:
        return None
    given = pattern_and_flags(pattern, flags)
    test = None if given is None else compiled(*given)
    if given is None or test is None or test(""):
        return None
    replacement = explicit(replacement)
    literals: list[str] = _REFERENCE.split(replacement)[::3]
    groups = [int(found[1] or found[2]) for found in _REFERENCE.finditer(replacement)]
    if any("$" in literal for literal in literals):
        return None
    parts = list(zip(groups, literals[1:], strict=True))
    pattern, flags = given
    if _is_quick(pattern, flags):
        template = literals[0].replace("\\", r"\\")
        for group, literal in zip(groups, literals[1:], strict=True):
            template += ("" if group else r"\g<0>") + literal.replace("\\", r"\\")
        quick, growth = _quick(pattern, flags), 1 + len(replacement)

        def change(text: str) -> str:
            if growth * len(text) <= _AT_ONCE:
                return quick.sub(template, text)
            return _replaced(quick, text, literals[0], parts)

        return change
    import re2

    translated = _Translation(pattern, "i" in flags).text
    try:
        engine = re2.compile(f"(?{flags}){translated}" if flags else translated, _options(True))
    except re2.error:
        return None
    return lambda text: _replaced(engine, text, literals[0], parts)


_cached_replacer = lru_cache(maxsize=MAX_CACHED_PATTERNS)(_replacer)


def _replaced(engine: Any, text: str, front: str, parts: list[tuple[int, str]]) -> str:
    """The text with each match replaced by `front` and each group of `parts` with its literal.

    Raises:
        LimitReached: if it would have more than `MOST_TEXT_BYTES`.
    """
    made: list[str] = []
    found: list[str] = []
    end = size = 0
    for match in engine.finditer(text):
        found += (text[end : match.start()], front)
        for group, literal in parts:
            found += ((match[group] or "") if group <= engine.groups else "", literal)
        end = match.end()
        if len(found) >= _PIECES:
            check()
            made.append("".join(found))
            size += len(made[-1])
            if size > MOST_TEXT_BYTES:
                raise LimitReached("text")
            found.clear()
    found.append(text[end:])
    return "".join((*made, *found))


# ------------------------------------------------------------------ patterns for Python's engine

_ATOM = r"(?:[\w \-/:,;=@&%~'\"<>!]|\\[.\\\-/+*?()\[\]{}|^$]|\.|\[\^?[\w \-:./@]+\])"
_CHOICES = re.compile(rf"\^?{_ATOM}*(?:\|{_ATOM}+)*\$?", re.ASCII)
"""Patterns without repetition and groups: each position of the text is tested once per choice."""
_ONE_RUN = re.compile(rf"\^(?:{_ATOM}(?P<few>\?)?)*(?:{_ATOM}[*+]{_ATOM}*)?\$?", re.ASCII)
"""One repetition, after the beginning: a step of backtracking costs the rest of the pattern."""
_LAST_RUN = re.compile(rf"\^?{_ATOM}*{_ATOM}[*+]", re.ASCII)
"""One repetition, at the end, so that nothing after it causes backtracking."""
_MAX_OPTIONAL = 2


def _is_quick(pattern: str, flags: str) -> bool:
    """Whether Python's engine matches the pattern with the same meaning and in linear time."""
    if flags not in ("", "s"):
        return False
    if _CHOICES.fullmatch(pattern):
        # `^` and `$` belong to the first and the last choice only, as in the other engines.
        return _is_valid(pattern)
    if _LAST_RUN.fullmatch(pattern):
        return _is_valid(pattern)
    return (
        _ONE_RUN.fullmatch(pattern) is not None
        and pattern.count("?") - pattern.count(r"\?") <= _MAX_OPTIONAL
        and _is_valid(pattern)
    )


def _is_valid(pattern: str) -> bool:
    """Whether the ranges of the classes ascend and contain no syntax that only Python has."""
    try:
        re.compile(pattern)
    except re.error:
        return False
    return re.search(r"--|&&|~~|\|\|", pattern) is None


# ------------------------------------------------------------------ patterns for RE2


class _OtherSyntaxError(Exception):
    """The pattern has syntax that the two engines do not share."""


_DIGIT = r"\p{Nd}"
_BLANK = r"\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}"
_WORD = (
    r"\p{L}\p{Nl}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}"
    r"\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}"
)
_CLASSES = {"d": _DIGIT, "s": _BLANK, "w": _WORD}
_LITERAL = frozenset("\\.+*?()|[]{}^$-/,:;=@%&!~#'\" ")
"""Characters that denote themselves after a backslash."""
_CONTROL = frozenset("nrtfv")
_CATEGORIES = frozenset(
    re.findall(
        r"\w+",
        "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp",
    )
)
_REPEATED = re.compile(r"\{([0-9]{1,4})(,([0-9]{1,4})?)?\}")
_PROPERTY = re.compile(r"\\([pP])(?:\{([A-Z][a-z]?)\}|([A-Z]))")
_MAX_REPEATED = 1000


class _Translation:
    """One pattern in the syntax of RE2; `\\d`, `\\s` and `\\w` are those of Unicode.

    Raises:
        _OtherSyntaxError: if it may have another meaning for pyoxigraph's engine.
    """

    def __init__(self, pattern: str, folded: bool):
        self._pattern = pattern
        self._folded = folded
        self._at = 0
        self.text = "".join(self._parts())

    def _parts(self) -> list[str]:
        found: list[str] = []
        repeatable = False
        while self._at < len(self._pattern):
            sign = self._pattern[self._at]
            if sign in "*+?{":
                if not repeatable:
                    raise _OtherSyntaxError
                found.append(self._repetition())
                repeatable = False
                continue
            repeatable = sign not in "^$|("
            if sign == "\\":
                found.append(self._escape(in_class=False))
            elif sign == "[":
                found.append(self._class())
            elif sign == "(":
                found.append(self._opening())
            else:
                self._at += 1
                found.append(f"\\{sign}" if sign in "]}" else sign)
        return found

    def _opening(self) -> str:
        rest = self._pattern[self._at : self._at + 3]
        if rest[1:2] != "?":
            self._at += 1
            return "("
        if rest != "(?:":
            raise _OtherSyntaxError
        self._at += 3
        return rest

    def _repetition(self) -> str:
        start = self._at
        if self._pattern[start] == "{":
            found = _REPEATED.match(self._pattern, start)
            if found is None or max(int(found[1]), int(found[3] or 0)) > _MAX_REPEATED:
                raise _OtherSyntaxError
            self._at = found.end()
        else:
            self._at += 1
        if self._pattern[self._at : self._at + 1] == "?":
            self._at += 1
        return self._pattern[start : self._at]

    def _escape(self, in_class: bool) -> str:
        """Translate an escape. The escape of a class becomes its members."""
        start = self._at
        letter = self._pattern[start + 1 : start + 2]
        self._at += 2
        if letter in _LITERAL or letter in _CONTROL:
            return f"\\{letter}"
        if letter == "D":
            return r"\P{Nd}"
        if letter in _CLASSES:
            return _CLASSES[letter] if in_class else f"[{_CLASSES[letter]}]"
        if letter.lower() in _CLASSES and not in_class:
            return f"[^{_CLASSES[letter.lower()]}]"
        found = _PROPERTY.match(self._pattern, start)
        name = "" if found is None else found[2] or found[3]
        if found is None or self._folded or name not in _CATEGORIES:
            raise _OtherSyntaxError
        self._at = found.end()
        return f"\\{found[1]}{{{name}}}"

    def _class(self) -> str:
        """A class of characters, ranges and escapes; `-` is a range, or the first or last sign."""
        pattern = self._pattern
        found = "["
        self._at += 1
        if pattern[self._at : self._at + 1] == "^":
            found += "^"
            self._at += 1
        first = self._at
        while True:
            sign = pattern[self._at : self._at + 1]
            following = pattern[self._at + 1 : self._at + 2]
            if sign in ("", "["):
                raise _OtherSyntaxError
            if sign == "]":
                if self._at == first:
                    raise _OtherSyntaxError
                self._at += 1
                return found + "]"
            if sign in "&~-" and sign == following:
                raise _OtherSyntaxError
            if sign == "-" and not (self._at == first or following == "]"):
                raise _OtherSyntaxError
            found += self._member()

    def _member(self) -> str:
        pattern, start = self._pattern, self._at
        if pattern[start] == "\\":
            low = self._escape(in_class=True)
        else:
            self._at += 1
            low = f"\\{pattern[start]}" if pattern[start] in "^-" else pattern[start]
        ranged = pattern[self._at : self._at + 1] == "-"
        if not ranged or pattern[self._at + 1 : self._at + 2] == "]":
            return low
        high = pattern[self._at + 1 : self._at + 2]
        if len(low) > 2 or high in ("", "-", "[", "\\") or pattern[start] == "-":
            raise _OtherSyntaxError
        self._at += 2
        return f"{low}-{high}"
