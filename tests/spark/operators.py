"""The stateful operators of `spaseq.spark` driven as Spark drives them, in one process."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Row


class _Value:
    """A state of the current group; Spark's `ValueState` and `ListState`."""

    def __init__(self, operator: Operator, name: str):
        self._operator, self._name = operator, name

    def _group(self) -> dict[str, Any]:
        return self._operator.states.setdefault(self._operator.key, {})

    def exists(self) -> bool:
        return self._name in self._group()

    def get(self) -> Any:
        return self._group().get(self._name)

    def update(self, value: tuple[Any, ...]) -> None:
        self._group()[self._name] = value

    def put(self, values: list[tuple[Any, ...]]) -> None:
        self._group()[self._name] = values

    def clear(self) -> None:
        self._group().pop(self._name, None)


class Operator:
    """The state of a stateful operator; a group is a key. It is its own handle and clock."""

    def __init__(self) -> None:
        self.states: dict[int, dict[str, Any]] = {}
        self.timers: dict[int, set[int]] = {}
        self.key = 0
        self.watermark = 0

    def getValueState(self, name: str, schema: str) -> _Value:
        return _Value(self, name)

    getListState = getValueState

    def getCurrentWatermarkInMs(self) -> int:
        return self.watermark

    def listTimers(self) -> Iterator[int]:
        return iter(self.timers.get(self.key, ()))

    def registerTimer(self, time: int) -> None:
        self.timers.setdefault(self.key, set()).add(time)

    def deleteTimer(self, time: int) -> None:
        self.timers[self.key].discard(time)

    @property
    def wakes(self) -> list[int]:
        """When groups want to be woken, in milliseconds."""
        return [time for times in self.timers.values() for time in times]

    def copied(self) -> Operator:
        """The same state, apart."""
        other = Operator()
        other.states, other.timers = copy.deepcopy(self.states), copy.deepcopy(self.timers)
        return other

    def batch(
        self, processor: Any, fresh: Mapping[int, Sequence[Row]], watermark: int
    ) -> list[Row]:
        """What a micro-batch gives: the rows of groups, then the timers that expire."""
        self.watermark = watermark
        processor.init(self)
        given: list[Row] = []
        for key, rows in fresh.items():
            self.key = key
            given += processor.handleInputRows((key,), iter(rows), self)
        for key, times in list(self.timers.items()):
            self.key = key
            for time in sorted(times):
                if time <= watermark and time in times:
                    times.discard(time)
                    given += processor.handleExpiredTimer((key,), self, None)
        return given
