"""Frozen dataclasses that take a quarter of the time to create.

`dataclasses.dataclass` generates and compiles source text for about six methods of each class. The
package has some 200 of these classes, and creating them was half of the time it took to start
(`benchmarks/micro/start.py`). Here only `__init__` is generated. The other methods are closures
over the names of the fields. `dataclasses` does the rest, and all of it for other kinds of classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]


def _init(kind: type[Any], fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """The `__init__` of a class: it writes the slots, which assignment refuses to do."""
    missing = dataclasses.MISSING
    names: dict[str, Any] = {"_missing": missing}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    body = []
    for number, part in enumerate(fields):
        default, value = f"_default{number}", part.name
        names[f"_set{number}"] = getattr(kind, part.name).__set__
        if part.default is not missing:
            names[default] = part.default
            parameter, fixed = f"{part.name}={default}", default
        elif part.default_factory is not missing:
            names[default] = part.default_factory
            parameter, fixed = f"{part.name}=_missing", f"{default}()"
            value = f"{default}() if {part.name} is _missing else {part.name}"
        else:
            parameter, fixed = part.name, ""
        if part.init:
            parameters[part.kw_only is True].append(parameter)
        else:
            value = fixed
        if value:
            body.append(f" _set{number}(self, {value})\n")
    if hasattr(kind, "__post_init__"):
        body.append(" self.__post_init__()\n")
    arguments = [
        "self",
        *parameters[False],
        *(["*"] if parameters[True] else []),
        *parameters[True],
    ]
    exec(f"def __init__({', '.join(arguments)}):\n{''.join(body) or ' pass'}", names)
    init: Callable[..., None] = names["__init__"]
    return init


def _refuse_value(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _frozen(kind: type[Any]) -> type[Any]:
    """A class as `dataclass(frozen=True, slots=True)` makes it."""
    kind = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(kind)
    fields = dataclasses.fields(kind)
    names = [part.name for part in fields]
    compared = [part.name for part in fields if part.compare]
    shown = [part.name for part in fields if part.repr]
    state = attrgetter(*compared) if compared else type
    setters = [getattr(kind, name).__set__ for name in names]

    def __eq__(self: object, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return state(self) == state(other)

    def __hash__(self: object) -> int:
        return hash(state(self))

    @recursive_repr()
    def __repr__(self: object) -> str:
        parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({parts})"

    def __getstate__(self: object) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: object, values: list[Any]) -> None:
        for set_value, value in zip(setters, values, strict=True):
            set_value(self, value)

    methods: dict[str, Callable[..., Any]] = {
        "__init__": _init(kind, fields),
        "__setattr__": _refuse_value,
        "__delattr__": _refuse_deletion,
    }
    own = vars(kind)
    for method in (__eq__, __hash__, __repr__, __getstate__, __setstate__):
        # Python sets the `__hash__` of a class that defines `__eq__` to None.
        if own.get(method.__name__) is None:
            methods[method.__name__] = method
    for name, method in methods.items():
        setattr(kind, name, method)
    return kind


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(kind=None, /, *, frozen=False, slots=False, **options):
        """As `dataclasses.dataclass`."""
        if kind is None:
            return lambda kind: dataclass(kind, frozen=frozen, slots=slots, **options)
        if frozen and slots and not options:
            return _frozen(kind)
        return dataclasses.dataclass(frozen=frozen, slots=slots, **options)(kind)
