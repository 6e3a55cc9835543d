"""Everything public is documented: what it does, each parameter, errors, and an example.

Public are the names of the package, and the public attributes of its classes. A function says what
it does, has its parameters under `Args:`, what it raises under `Raises:` if it says so, and a use
under `Example:`. A docstring that begins with "As `Run.push`" refers to that of another function,
which must have the same parameters.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import spaseq
import spaseq.frames

REFERENCE = re.compile(r"As `(\w+)\.(\w+)`")
EXAMPLE = re.compile(r"^\s*Example:\n\s+>>> ", re.MULTILINE)
OPTIONS = frozenset(("options", "columns", "types"))
"""Arguments that another docstring may describe."""


def public() -> Iterator[tuple[str, Any]]:
    """The public names, and those of the attributes of public classes that they define."""
    yield "frames.match", spaseq.frames.match
    for name in spaseq.__all__:
        thing = getattr(spaseq, name)
        yield name, thing
        if not isinstance(thing, type):
            continue
        for attribute, value in vars(thing).items():
            named = thing.__name__ == "Run" and attribute not in dir(thing.__new__(thing))
            if attribute.startswith("_") or named:
                continue
            if callable(value) or isinstance(value, property) or inspect.isgetsetdescriptor(value):
                yield f"{name}.{attribute}", value


PUBLIC = dict(public())


def is_function(thing: Any) -> bool:
    return inspect.isroutine(thing) and not inspect.isgetsetdescriptor(thing)


def text_of(thing: Any) -> str:
    """The docstring, or that of the function that it refers to."""
    text = inspect.getdoc(thing) or ""
    found = REFERENCE.match(text)
    if found is None:
        return text
    return inspect.getdoc(vars(getattr(spaseq, found[1]))[found[2]]) or ""


def parameters(thing: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(thing).parameters if name != "self"]
    except ValueError:
        return []


@pytest.mark.parametrize("name", PUBLIC)
def test_it_says_what_it_does(name: str) -> None:
    text = text_of(PUBLIC[name])
    if not text and "." in name:  # an attribute, which its class describes
        owner, _, attribute = name.partition(".")
        described = inspect.getdoc(PUBLIC[owner]) or ""
        found = re.search(rf"^    {attribute}: (.*)", described, re.MULTILINE)
        text = found[1] if found is not None else ""
    assert len(text.split()) >= 3


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if is_function(thing)])
def test_a_function_describes_its_parameters_and_has_an_example(name: str) -> None:
    text = text_of(PUBLIC[name])
    for parameter in parameters(PUBLIC[name]):
        shared = parameter in OPTIONS and "the arguments are those of" in text
        assert shared or re.search(rf"^\s+{parameter}: ", text, re.MULTILINE), parameter
    assert EXAMPLE.search(text), "no example"


def test_how_much_is_public() -> None:
    """A name that is lost or hidden by accident changes these counts."""
    functions = [name for name, thing in PUBLIC.items() if is_function(thing)]
    assert len(functions) >= 50
    assert len(PUBLIC) >= 95
