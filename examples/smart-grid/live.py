"""Generate the smart grid's three streams without end, and push them to a server.

    python examples/smart-grid/live.py --speed 240 http://127.0.0.1:8642

`--speed` is the number of seconds of the grid in one second of the clock. The houses, meters and
stations are those of kb.ttl. Clouds pass over each district now and then; then the sky darkens in
steps, and houses draw power from the grid although their batteries are charged.
"""

from __future__ import annotations

import argparse
import os
import random
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

DISTRICTS, HOUSES = 3, 6
CAPACITY = (15.0, 15.0, 10.0, 7.5, 5.0, 7.5)
STEP = timedelta(seconds=30)
"""The time between two instants of the grid."""
WEATHER_EVERY, POWER_EVERY = 8, 3
"""Steps between two events of one station, and of one house."""
PREFIXES = """BASE <http://example.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX sosa: <http://www.w3.org/ns/sosa/>
PREFIX grid: <http://w3id.org/spaseq/smart-grid#>
"""


@dataclass
class Grid:
    """The state of the simulated grid."""

    chance: random.Random
    irradiance: list[float] = field(default_factory=lambda: [450.0] * DISTRICTS)
    clouds: list[int] = field(default_factory=lambda: [0] * DISTRICTS)
    """For each district, how many more times its sky darkens."""
    charge: list[float] = field(default_factory=lambda: [0.7 * size for size in CAPACITY])

    def weather(self, district: int) -> str:
        """The observation of a station."""
        if self.clouds[district]:
            self.clouds[district] -= 1
            self.irradiance[district] *= self.chance.uniform(0.6, 0.85)
        else:
            self.irradiance[district] += (480 - self.irradiance[district]) * 0.3
            self.irradiance[district] *= self.chance.uniform(0.95, 1.05)
            if self.chance.random() < 0.12:
                self.clouds[district] = self.chance.randint(2, 4)
        return (
            f"[] a sosa:Observation ; sosa:madeBySensor <smart-grid/station/{district}> ; "
            "sosa:observedProperty grid:irradiance ; "
            f"sosa:hasSimpleResult {self.irradiance[district]:.0f} ."
        )

    def power(self, house: int) -> str:
        """The observation of a meter; under clouds a house draws more."""
        dark = self.irradiance[house % DISTRICTS] < 350
        drawn = self.chance.random() < (0.5 if dark else 0.1)
        watts = self.chance.randint(300, 2000) if drawn else 0
        price = self.chance.uniform(0.15, 0.3)
        return (
            f"[] a sosa:Observation ; sosa:madeBySensor <smart-grid/meter/{house}> ; "
            f"sosa:observedProperty grid:gridPower ; sosa:hasSimpleResult {watts} ; "
            f"grid:price {price:.2f} ."
        )

    def storage(self, house: int) -> str:
        """The observation of a battery, which the sun charges and the evening empties."""
        change = 0.02 if self.irradiance[house % DISTRICTS] > 350 else -0.03
        charge = self.charge[house] + CAPACITY[house] * (change + self.chance.gauss(0, 0.01))
        self.charge[house] = min(max(charge, 0.1 * CAPACITY[house]), CAPACITY[house])
        return (
            f"[] a sosa:Observation ; sosa:madeBySensor <smart-grid/battery/{house}> ; "
            f"sosa:observedProperty grid:charge ; sosa:hasSimpleResult {self.charge[house]:.2f} ."
        )


def instants(grid: Grid, start: datetime) -> Iterator[tuple[datetime, list[tuple[str, str]]]]:
    """Each instant with its events, as pairs of a stream and the triples of an event."""
    number = 0
    while True:
        events = [
            ("weather", grid.weather(district))
            for district in range(DISTRICTS)
            if number % WEATHER_EVERY == district * WEATHER_EVERY // DISTRICTS
        ]
        for house in range(HOUSES):
            if (number + house) % POWER_EVERY == 0:
                events += [("power", grid.power(house)), ("storage", grid.storage(house))]
        yield start + number * STEP, events
        number += 1


def trig(stream: str, when: datetime, triples: list[str]) -> str:
    """The events of one stream at one instant."""
    text = when.isoformat(timespec="seconds").replace("+00:00", "Z")
    parts = [PREFIXES]
    for position, one in enumerate(triples):
        name = f"<smart-grid/{stream}/{text}/{position}>"
        parts.append(f'{name} prov:generatedAtTime "{text}"^^xsd:dateTime . {name} {{ {one} }}\n')
    return "".join(parts)


def push(server: str, stream: str, body: str) -> None:
    """Push events; a server that asks to wait is asked again."""
    headers = {"Content-Type": "application/trig"}
    if token := os.environ.get("SPASEQ_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(
        f"{server}/v1/streams/{stream}/events", body.encode(), headers, method="POST"
    )
    while True:
        try:
            urllib.request.urlopen(request, timeout=30).close()
            return
        except urllib.error.HTTPError as error:
            if error.code != 429:
                raise SystemExit(f"{stream}: {error.read().decode(errors='replace')}") from None
            time.sleep(float(error.headers.get("Retry-After", "1")))
        except OSError as error:
            print(f"waiting for {server}: {error}", flush=True)
            time.sleep(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("server", nargs="?", default="http://127.0.0.1:8642")
    parser.add_argument("--speed", type=float, default=240.0, help="grid seconds in one second")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--instants", type=int, help="stop after so many instants")
    arguments = parser.parse_args()
    started, start = time.monotonic(), datetime.now(UTC).replace(microsecond=0)
    grid = Grid(random.Random(arguments.seed))
    for number, (when, events) in enumerate(instants(grid, start)):
        if number == arguments.instants:
            return
        due = started + number * STEP.total_seconds() / arguments.speed
        time.sleep(max(due - time.monotonic(), 0))
        for stream in ("weather", "power", "storage"):
            if triples := [one for name, one in events if name == stream]:
                push(arguments.server, stream, trig(stream, when, triples))


if __name__ == "__main__":
    main()
