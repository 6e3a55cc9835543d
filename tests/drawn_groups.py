"""GROUP clauses drawn by chance, for the queries of `strategies`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Choices(Protocol):
    def of(self, options: Sequence[T]) -> T: ...

    def number(self, least: int, most: int) -> int: ...


class GroupDraw:
    """One draw of a GROUP clause.

    Args:
        choose: The decisions.
        names: The variables of positive GPMs.
        term: A term over one match, such as `COUNT(B)`.
        within: The WITHIN clause.
    """

    def __init__(self, choose: Choices, names: Sequence[str], term: Callable[[], str], within: str):
        self._choose, self._names, self._term = choose, names, term
        self._values = [name for name in names if name[0] in "voj"] or list(names)
        self.keys = [self._key(number) for number in range(choose.of((1, 0, 1, 2)))]
        self.keys = list(dict.fromkeys(self.keys))
        self._over = self._drawn_over("EVENTS" in within or "UNBOUNDED" in within)
        self.lets = [
            f"({self._aggregate()}{choose.of(('', '', ' + 1'))} AS ?let{number})"
            for number in range(choose.of((0, 1, 0, 2)))
        ]
        if len(self.lets) == 2 and choose.number(0, 1):
            self.lets[1] = "(COALESCE(?let0, 7) AS ?let1)"

    @property
    def key_names(self) -> list[str]:
        return [key.rpartition("?")[2].rstrip(")") for key in self.keys]

    @property
    def shown(self) -> list[str]:
        """The keys and what LET binds."""
        return [*self.key_names, *(f"let{number}" for number in range(len(self.lets)))]

    @property
    def clause(self) -> str:
        keys = f" BY {' '.join(self.keys)}" if self.keys else ""
        lets = f" LET {' '.join(self.lets)}" if self.lets else ""
        having = [self._condition() for _ in range(self._choose.of((0, 0, 1, 2)))]
        tested = f" HAVING {' '.join(having)}" if having else ""
        return f"\nGROUP{keys}{self._over}{lets}{tested}"

    def _key(self, number: int) -> str:
        match self._choose.number(0, 4):
            case 3:
                return f"(?{self._choose.of(self._values)} > 1 AS ?key{number})"
            case 4:
                return f"({self._term()} AS ?key{number})"
        return f"?{self._choose.of(self._names)}"

    def _drawn_over(self, needed: bool) -> str:
        if not needed and self._choose.number(0, 2) == 2:
            return ""
        tumbling = self._choose.of(("", "", "TUMBLING "))
        return f" OVER {tumbling}{self._choose.of((2, 3, 1, 4, 6))} SECONDS"

    def _aggregate(self) -> str:
        name = self._choose.of(self._values)
        value = self._choose.of((f"?{name}", f"?{name}", f"?{name} + 1"))
        if self.keys and self._choose.number(0, 7) == 7:
            value = f"?{self._choose.of(self.key_names)}"
        distinct = self._choose.of(("", "", "DISTINCT "))
        function = self._choose.of(
            ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT", "*")
        )
        if function == "*":
            return "COUNT(*)"
        if function == "GROUP_CONCAT":
            return f'GROUP_CONCAT({distinct}{value}; SEPARATOR=",")'
        return f"{function}({distinct}{value})"

    def _condition(self) -> str:
        match self._choose.number(0, 3):
            case 0:
                return "(COUNT(*) > 1)"
            case 1 if self.lets:
                return "(?let0 >= 1)"
        return f"({self._aggregate()} {self._choose.of(('>=', '<', '!='))} 2)"

    def form(self, form: str) -> str:
        """The form of the query in place of an ungrouped one."""
        shown = [f"?{name}" for name in self.key_names]
        shown += [f"?let{number}" for number in range(len(self.lets))]
        if form.startswith("ASK"):
            return "ASK"
        if "CONSTRUCT" in form:
            head = form[: form.index("CONSTRUCT")]
            predicate = self._choose.of((":p", ":q"))
            triples = [f":a {predicate} {name}" for name in shown] or [f":a {predicate} 1"]
            return f"{head}CONSTRUCT {{ {' . '.join(triples)} }}"
        items = [name for name in dict.fromkeys(shown) if self._choose.number(0, 2)]
        items += [
            f"({self._aggregate()} AS ?agg{number})" for number in range(self._choose.number(1, 3))
        ]
        distinct = "DISTINCT " if "DISTINCT" in form else ""
        return f"SELECT {distinct}{' '.join(items)}"
