"""Messages that name options of the command line, for callers in Python.

The stages name the command line's options in their errors, since each message has one text. When an
error leaves the package through a Python call, `python_words` replaces the options with arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from spaseq.errors import InputError, LimitExceeded, SpaseqError

_KEYWORDS = {
    "events": "framing",
    "input-format": "syntax",
    "time-unit": "unit",
    "context": "contexts",
}
"""Options whose Python argument has another name."""
_TWICE = re.compile(r"--[a-z-]+(?: [A-Z=.a-z]+)? \((?:[a-z_]+)=(?: in Python)?\)")
_KB = re.compile(r"--kb '([^'=]+)=FILE'(?: \(kb= in Python\))?")
_VALUED = re.compile(r"--(events|on-error|on-limit|time-unit|entail) ([a-z][\w-]*(?::N)?)")
_PRECISION = re.compile(r"--time-precision truncate or round \(time_precision= in Python\)")
_PLAIN = re.compile(r"(?<![\w-])(?<!map )--([a-z][a-z-]+)(?: (?:NAME=MAPPING\.rq|[A-Z]+\b))?")


def python_text(text: str) -> str:
    """A message with Python arguments in place of options."""
    text = _PRECISION.sub('time_precision="truncate" or "round"', text)
    text = _KB.sub(r'kb={"\1": "FILE"}', text)
    text = _TWICE.sub(_argument_named, text)
    text = _VALUED.sub(lambda found: f'{_keyword(found[1])}="{found[2]}"', text)
    return _PLAIN.sub(lambda found: _keyword(found[1]), text)


def _argument_named(found: re.Match[str]) -> str:
    """`max_groups` of `--max-groups (max_groups=)`."""
    return found[0].rpartition("(")[2].partition("=")[0]


def _keyword(option: str) -> str:
    return _KEYWORDS.get(option, option.replace("-", "_"))


@contextmanager
def python_words() -> Iterator[None]:
    """Make errors that leave the block name Python arguments."""
    try:
        yield
    except SpaseqError as error:
        if len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (python_text(error.args[0]),)
        if isinstance(error, InputError | LimitExceeded):
            error.message = python_text(error.message)
        raise
