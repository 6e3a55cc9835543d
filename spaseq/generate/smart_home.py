"""Smart home: houses that draw, generate and store power under changing clouds.

There are three streams. Every ten minutes the weather station of each district reports irradiance
and wind, and each house reports its meter (`power`) and its battery (`storage`) with one timestamp.
Clouds follow a fractal curve. The sun and the load of households follow daily curves, and the price
of power follows both. The knowledge base names the district, meter and battery of each house, and
the capacity of each battery.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from spaseq.generate.chance import Fractal, arch, between, decimal, whole
from spaseq.generate.dataset import Dataset
from spaseq.generate.framing import (
    DAY,
    HOUR,
    MINUTE,
    Calendar,
    event_template,
    turtle_header,
)

_STREAMS = ("weather", "power", "storage")
_WEATHER, _POWER, _STORAGE = range(3)
_TICK = 10 * MINUTE
_DAWN = 8 * HOUR

_QUARTERS = ("Harbour", "Mill", "Castle", "Orchard", "Station", "Quarry", "Abbey", "Meadow")

_WEATHER_EVENT = event_template(
    "_:i{n} a sosa:Observation",
    "_:i{n} sosa:madeBySensor <smart-grid/station/{station}>",
    "_:i{n} sosa:observedProperty grid:irradiance",
    '_:i{n} sosa:hasSimpleResult "{irradiance}"^^xsd:integer',
    "_:w{n} a sosa:Observation",
    "_:w{n} sosa:madeBySensor <smart-grid/station/{station}>",
    "_:w{n} sosa:observedProperty grid:windSpeed",
    '_:w{n} sosa:hasSimpleResult "{wind}"^^xsd:decimal',
)
_POWER_EVENT = event_template(
    "_:p{n} a sosa:Observation",
    "_:p{n} sosa:madeBySensor <smart-grid/meter/{house}>",
    "_:p{n} sosa:observedProperty grid:gridPower",
    '_:p{n} sosa:hasSimpleResult "{watts}"^^xsd:integer',
    '_:p{n} grid:price "{price}"^^xsd:decimal',
)
_STORAGE_EVENT = event_template(
    "_:s{n} a sosa:Observation",
    "_:s{n} sosa:madeBySensor <smart-grid/battery/{house}>",
    "_:s{n} sosa:observedProperty grid:charge",
    '_:s{n} sosa:hasSimpleResult "{charge}"^^xsd:decimal',
)

QUERY = """\
# The sky darkens over a district at least twice, by a tenth each time. Then a house there draws
# power from the grid although its battery is more than half full.
PREFIX sosa: <http://www.w3.org/ns/sosa/>
PREFIX schema: <https://schema.org/>
PREFIX grid: <http://w3id.org/spaseq/smart-grid#>

SELECT ?house ?districtName ?before (?sun AS ?now) (COUNT(Darker) AS ?steps)
       ?watts ?price ?charge ?capacity
WITHIN 60 MINUTES
FROM STREAM weather <http://example.org/smart-grid/weather>
FROM STREAM power <http://example.org/smart-grid/power>
FROM STREAM storage <http://example.org/smart-grid/storage>
FROM NAMED <http://example.org/smart-grid/kb>
PARTITION BY (?house)
EMIT MAX
AFTER MATCH SKIP PAST LAST EVENT
WHERE {
  SEQ(Bright ; Darker{2,} ; (Draws & Stored))

  DEFINE GPM Bright ON weather {
    [] sosa:madeBySensor ?station ; sosa:observedProperty grid:irradiance ;
       sosa:hasSimpleResult ?before .
    GRAPH <http://example.org/smart-grid/kb> {
      ?station grid:inDistrict ?district . ?district schema:name ?districtName .
      ?house grid:inDistrict ?district ; a schema:House .
    }
  }
  DEFINE GPM Darker ON weather {
    [] sosa:madeBySensor ?station ; sosa:observedProperty grid:irradiance ;
       sosa:hasSimpleResult ?sun .
    GRAPH <http://example.org/smart-grid/kb> {
      ?station grid:inDistrict ?district . ?house grid:inDistrict ?district ; a schema:House .
    }
    FILTER(?sun < 0.9 * PREV(?sun, ?before))
  }
  DEFINE GPM Draws ON power {
    [] sosa:madeBySensor ?meter ; sosa:hasSimpleResult ?watts ; grid:price ?price .
    GRAPH <http://example.org/smart-grid/kb> { ?meter sosa:isHostedBy ?house }
    FILTER(?watts > 500)
  }
  DEFINE GPM Stored ON storage {
    [] sosa:madeBySensor ?battery ; sosa:hasSimpleResult ?charge .
    GRAPH <http://example.org/smart-grid/kb> {
      ?battery sosa:isHostedBy ?house ; grid:capacity ?capacity .
    }
    FILTER(?charge > 0.5 * ?capacity)
  }
}
"""


class _House:
    """A household: its base load (W), its panels (kW) and its battery (kWh)."""

    __slots__ = ("base", "capacity", "charge", "number", "panels")

    def __init__(self, number: int, random: Random) -> None:
        self.number = number
        self.base = whole(random, 200, 500)
        self.panels = whole(random, 2, 6)
        self.capacity = 5 + 2.5 * whole(random, 0, 4)
        self.charge = self.capacity * (0.3 + 0.6 * random.random())

    def step(self, time: int, sun: float, random: Random) -> int:
        """Simulate ten minutes: charge or drain the battery; returns the watts from the grid."""
        load = self.base + 900 * arch((time - 6 * HOUR) / (4 * HOUR))
        load += 1600 * arch((time - 16 * HOUR) / (7 * HOUR))
        if random.random() < 0.15:
            load += 500 + 2000 * random.random()
        need = load - self.panels * sun
        hours = _TICK / HOUR
        if need < 0:
            self.charge = min(self.capacity, self.charge - need * hours / 1000)
            return 0
        if time > 20 * HOUR:
            spent = min(self.charge, need * hours / 1000)
            self.charge -= spent
            need -= 1000 * spent / hours
        return int(need)


class _SmartHome:
    def __init__(self, events: int, random: Random) -> None:
        self._random = random
        self._calendar = Calendar()
        houses = between(6, events // 60, 600)
        self._skies = [Fractal(random) for _ in range(between(3, houses // 10, 20))]
        self._houses = [_House(number, random) for number in range(houses)]

    def knowledge(self) -> Iterator[str]:
        yield turtle_header(("schema", "sosa", "grid"))
        for number in range(len(self._skies)):
            quarter, round_ = _QUARTERS[number % len(_QUARTERS)], number // len(_QUARTERS)
            name = quarter if round_ == 0 else f"{quarter} {round_ + 1}"
            yield (
                f"<smart-grid/district/{number}> a schema:AdministrativeArea ; "
                f'schema:name "{name}" .\n'
                f"<smart-grid/station/{number}> a sosa:Sensor ; "
                f"grid:inDistrict <smart-grid/district/{number}> .\n"
            )
        for house in self._houses:
            number = house.number
            yield (
                f"<smart-grid/house/{number}> a schema:House ; "
                f"grid:inDistrict <smart-grid/district/{number % len(self._skies)}> .\n"
                f"<smart-grid/meter/{number}> a sosa:Sensor ; "
                f"sosa:isHostedBy <smart-grid/house/{number}> .\n"
                f"<smart-grid/battery/{number}> a grid:Battery ; "
                f"sosa:isHostedBy <smart-grid/house/{number}> ; "
                f"grid:capacity {decimal(int(100 * house.capacity))} .\n"
            )

    def events(self) -> Iterator[tuple[int, str]]:
        instant = _DAWN
        number = 0
        while True:
            time = instant % DAY
            light = arch((time - 5 * HOUR) / (16 * HOUR))
            irradiance = [_irradiance(light, _drift(sky)) for sky in self._skies]
            yield from self._weather(instant, number, irradiance)
            yield from self._meters(instant, number, irradiance)
            number += len(self._skies) + len(self._houses)
            instant += _TICK

    def _weather(
        self, instant: int, number: int, irradiance: list[int]
    ) -> Iterator[tuple[int, str]]:
        for station, sun in enumerate(irradiance):
            number += 1
            text = _WEATHER_EVENT.format(
                graph=f"<http://example.org/smart-grid/weather/{number}>",
                time=self._calendar.lexical(instant + station * (MINUTE // len(irradiance))),
                n=number,
                station=station,
                irradiance=sun,
                wind=decimal(int(1200 * self._random.random() * self._random.random())),
            )
            yield _WEATHER, text

    def _meters(
        self, instant: int, number: int, irradiance: list[int]
    ) -> Iterator[tuple[int, str]]:
        time = instant % DAY
        pause = (_TICK - MINUTE) // len(self._houses)
        price = decimal(int(_price(time)))
        for place, house in enumerate(self._houses):
            number += 1
            lexical = self._calendar.lexical(instant + MINUTE + place * pause)
            watts = house.step(time, irradiance[house.number % len(irradiance)], self._random)
            text = _POWER_EVENT.format(
                graph=f"<http://example.org/smart-grid/power/{number}>",
                time=lexical,
                n=number,
                house=house.number,
                watts=watts,
                price=price,
            )
            yield _POWER, text
            text = _STORAGE_EVENT.format(
                graph=f"<http://example.org/smart-grid/storage/{number}>",
                time=lexical,
                n=number,
                house=house.number,
                charge=decimal(int(100 * house.charge)),
            )
            yield _STORAGE, text


def _drift(sky: Fractal) -> float:
    """Advance the clouds by ten minutes, which are two steps of the curve."""
    sky.step()
    return sky.step()


def _irradiance(light: float, sky: float) -> int:
    """Watts per square metre under a sky between -1 (clear) and 1 (overcast)."""
    return int(950 * light * (1 - 0.85 * max(0.0, min(0.5 + 2 * sky, 1.0))))


def _price(time: int) -> float:
    """Cents per kilowatt hour: high in the evening, low in sunlight."""
    evening, morning = arch((time - 16 * HOUR) / (6 * HOUR)), arch((time - 6 * HOUR) / (4 * HOUR))
    return 22 + 14 * evening + 6 * morning - 6 * arch((time - 9 * HOUR) / (8 * HOUR))


SMART_HOME = Dataset(_STREAMS, QUERY, _SmartHome)
