"""What is lost between the rows of a table and the triples of its events: counted, named once.

A mapping omits a triple whose variable has no value, as SPARQL's CONSTRUCT does. That is intended
for cells such as "n/a", but it can also remove a whole class of resources. Therefore every reason
is counted, with the first example.

Cost: nothing per row; the texts are written on request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Loss:
    """One reason why values of rows are in no event."""

    kind: str
    """`expression`: a BIND or a FILTER erred; `field`: a value of JSON is no term of its column;
    `triple`: a term cannot be a subject or a predicate; `row`: an event has no triples."""
    what: str
    """The expression, the field or the triple, as a mapping writes it."""
    count: int
    """Rows that are concerned."""
    rows: int
    """Rows that were read, or for which the expression was evaluated."""
    unbound: int
    """Further rows without a value, since a variable of the expression is unbound."""
    place: str
    """The place of the first one: `stations.csv, row 1`."""
    example: str
    """Its value, and what is wrong with it."""

    def __str__(self) -> str:
        where = f", first in {self.place}" if self.place else ""
        reason = f": {self.example}" if self.example else ""
        rows = f"{self.count:,} of {self.rows:,} row{'s' if self.rows != 1 else ''}"
        match self.kind:
            case "expression":
                return f"{self.what} erred in {rows}{where}{reason}"
            case "field":
                return f"the field {self.what} has no usable value in {rows}{where}{reason}"
            case "triple":
                return f"the triple {self.what} is omitted in {rows}{where}{reason}"
            case _:
                return f"{rows} gave no triple{where}{reason}"

    def as_data(self) -> dict[str, Any]:
        """For statistics."""
        counted = {"errors": self.count, "rows": self.rows}
        if self.kind == "expression":
            counted["unbound"] = self.unbound
        what = {} if self.kind == "row" else {self.kind: self.what}
        return {"kind": self.kind, **what, **counted, "first": self.place, "example": self.example}


def merged_losses(losses: Iterable[Loss]) -> list[Loss]:
    """The losses of several tables, with one record for each reason, in the order of the first."""
    found: dict[tuple[str, str], Loss] = {}
    for loss in losses:
        key = loss.kind, loss.what
        known = found.get(key)
        if known is None:
            found[key] = loss
            continue
        first = known if known.count else loss
        found[key] = Loss(
            loss.kind,
            loss.what,
            known.count + loss.count,
            known.rows + loss.rows,
            known.unbound + loss.unbound,
            first.place,
            first.example,
        )
    return list(found.values())


def worth_reporting(losses: Iterable[Loss]) -> list[Loss]:
    """The losses that a user should hear of: rows without triples only if nothing explains them."""
    found = [loss for loss in losses if loss.count]
    return [loss for loss in found if loss.kind != "row"] or found
