"""`spaseq.records.dataclass` behaves as `dataclasses.dataclass` does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from spaseq import records

DECORATORS = [dataclasses.dataclass, records.dataclass]


def _classes(decorator: Callable[..., Any]) -> tuple[type[Any], type[Any], type[Any], type[Any]]:
    made = decorator(frozen=True, slots=True)

    @made
    class Point:
        """A point."""

        x: int
        y: int = 0
        names: list[str] = field(default_factory=list, compare=False)
        note: str = field(default="", repr=False)

        def moved(self, by: int) -> Any:
            return dataclasses.replace(self, x=self.x + by)

    @made
    class Named(Point):
        name: str = "p"

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("a name is needed")

    @made
    class Empty:
        pass

    @made
    class Same:
        x: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Same)

        def __repr__(self) -> str:
            return "same"

    return Point, Named, Empty, Same


Point, Named, Empty, Same = _classes(records.dataclass)
for _kind in (Point, Named, Empty, Same):
    _kind.__qualname__ = _kind.__name__  # so that `pickle` finds them


@pytest.mark.parametrize("decorator", DECORATORS)
def test_construction_and_views(decorator: Callable[..., Any]) -> None:
    point, named, empty, same = _classes(decorator)
    first = point(1, note="n")
    assert (first.x, first.y, first.names, first.note) == (1, 0, [], "n")
    assert point(1).names is not first.names, "each instance has a default of its own"
    assert repr(first).endswith("Point(x=1, y=0, names=[])")
    assert repr(named(1, name="q")).endswith("Named(x=1, y=0, names=[], name='q')")
    assert repr(empty()).endswith("Empty()")
    assert repr(same(1)) == "same"
    assert first.moved(2) == point(3, note="n")
    assert point.__match_args__ == ("x", "y", "names", "note")
    assert [part.name for part in dataclasses.fields(named)] == ["x", "y", "names", "note", "name"]
    assert point.__doc__ == "A point."
    assert not hasattr(first, "__dict__")
    with pytest.raises(ValueError, match="a name is needed"):
        named(1, name="")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        point()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        point(1, z=2)


@pytest.mark.parametrize("decorator", DECORATORS)
def test_equality_and_hash(decorator: Callable[..., Any]) -> None:
    point, named, empty, same = _classes(decorator)
    assert point(1, names=["a"]) == point(1, names=["b"])
    assert point(1) != point(2)
    assert hash(point(1, names=["a"])) == hash(point(1, names=["b"]))
    assert point(1) != named(1)
    assert point(1) != (1, 0)
    assert empty() == empty()
    assert hash(empty()) == hash(empty())
    assert same(1) == same(2)
    assert len({point(1), point(1), point(2)}) == 2


@pytest.mark.parametrize("decorator", DECORATORS)
def test_frozen(decorator: Callable[..., Any]) -> None:
    point = _classes(decorator)[0](1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    with pytest.raises((AttributeError, TypeError)):  # the library raises a TypeError before 3.12
        point.z = 2
    assert point.x == 1


@pytest.mark.parametrize("value", [Point(1, 2, ["a"], "n"), Named(1, name="q"), Empty()])
def test_copies(value: Any) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(value, protocol)) == value
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value


def test_a_repr_that_contains_itself() -> None:
    point = Point(1)
    point.names.append(point)
    assert repr(point) == "Point(x=1, y=0, names=[...])"


def test_other_classes_are_left_to_the_standard_library() -> None:
    @records.dataclass(slots=True)
    class Counter:
        count: int = 0

    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)


@pytest.mark.parametrize("decorator", DECORATORS)
def test_fields_without_a_parameter_and_by_keyword(decorator: Callable[..., Any]) -> None:
    @decorator(frozen=True, slots=True)
    class Part:
        text: str
        size: int = field(default=0, init=False)
        words: list[str] = field(default_factory=list, init=False)
        later: int = field(init=False)
        end: int = field(default=9, kw_only=True)
        last: bool = False

        def __post_init__(self) -> None:
            object.__setattr__(self, "later", len(self.text))

    part = Part("abc", True, end=4)
    assert (part.size, part.words, part.later, part.end, part.last) == (0, [], 3, 4, True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        Part("abc", size=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional arguments"):
        Part("abc", True, 4)  # type: ignore[call-arg,misc]
