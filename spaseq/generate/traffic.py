"""Traffic: a city with traffic jams that spread upstream.

There are two streams, as in CityBench. Every five minutes each road segment reports its average
speed and number of vehicles (`traffic`) and its nitrogen dioxide (`pollution`). Jams begin at
random, more often in the rush hours, and can spread once to a segment that leads to the jammed one.
The knowledge base is the road network: the segments that each segment leads to, its street, its
length and its free-flow speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from random import Random

from spaseq.generate.chance import arch, between, decimal, whole
from spaseq.generate.dataset import Dataset
from spaseq.generate.framing import DAY, HOUR, MINUTE, Calendar, event_template, turtle_header

_STREAMS = ("traffic", "pollution")
_TRAFFIC, _POLLUTION = range(2)
_TICK = 5 * MINUTE
_STREETS = ("Alder", "Birch", "Cedar", "Elm", "Hazel", "Linden", "Maple", "Oak", "Poplar", "Rowan")

_TRAFFIC_EVENT = event_template(
    "_:t{n} a sosa:Observation",
    "_:t{n} sosa:hasFeatureOfInterest <traffic/segment/{segment}>",
    '_:t{n} traffic:averageSpeed "{speed}"^^xsd:decimal',
    '_:t{n} traffic:vehicleCount "{vehicles}"^^xsd:integer',
)
_POLLUTION_EVENT = event_template(
    "_:p{n} a sosa:Observation",
    "_:p{n} sosa:hasFeatureOfInterest <traffic/segment/{segment}>",
    "_:p{n} sosa:observedProperty traffic:nitrogenDioxide",
    '_:p{n} sosa:hasSimpleResult "{level}"^^xsd:integer',
)

QUERY = """\
# Congestion spreads: traffic crawls on a segment and its air is bad, in either order. Within
# five minutes, traffic also crawls on a segment that leads to it.
PREFIX sosa: <http://www.w3.org/ns/sosa/>
PREFIX traffic: <http://w3id.org/spaseq/traffic#>

CONSTRUCT {
  ?upstream traffic:congestedBy ?segment ; traffic:averageSpeed ?tail .
  ?segment traffic:averageSpeed ?speed ; traffic:nitrogenDioxideLevel ?level .
}
WITHIN 5 MINUTES
FROM STREAM traffic <http://example.org/traffic/traffic>
FROM STREAM pollution <http://example.org/traffic/pollution>
FROM NAMED <http://example.org/traffic/kb>
WHERE {
  SEQ((Crawl AND Fumes) : Spread)

  DEFINE GPM Crawl ON traffic {
    [] sosa:hasFeatureOfInterest ?segment ; traffic:averageSpeed ?speed .
    GRAPH <http://example.org/traffic/kb> { ?segment traffic:freeFlowSpeed ?free }
    FILTER(?speed < 0.4 * ?free)
  }
  DEFINE GPM Fumes ON pollution {
    [] sosa:hasFeatureOfInterest ?segment ; sosa:observedProperty traffic:nitrogenDioxide ;
       sosa:hasSimpleResult ?level .
    FILTER(?level > 80)
  }
  DEFINE GPM Spread ON traffic {
    [] sosa:hasFeatureOfInterest ?upstream ; traffic:averageSpeed ?tail .
    GRAPH <http://example.org/traffic/kb> {
      ?upstream traffic:leadsTo ?segment ; traffic:freeFlowSpeed ?freeUpstream .
    }
    FILTER(?tail < 0.4 * ?freeUpstream)
  }
}
"""


class _Segment:
    """A road segment: its free-flow speed (km/h), and the reports for which it stays jammed."""

    __slots__ = ("free", "jammed", "level", "onset")

    def __init__(self, random: Random) -> None:
        self.free = 10 * whole(random, 3, 8)
        self.jammed = 0
        self.onset = False
        self.level = 30.0


class _City:
    def __init__(self, events: int, random: Random) -> None:
        self._random = random
        self._segments = [_Segment(random) for _ in range(between(12, events // 100, 1000))]
        self._width = isqrt(len(self._segments))
        """The length of a row of segments; the last segment of a row leads to the next row."""

    def knowledge(self) -> Iterator[str]:
        yield turtle_header(("schema", "traffic"))
        count = len(self._segments)
        for number, segment in enumerate(self._segments):
            row, block = divmod(number, self._width)
            street, round_ = _STREETS[row % len(_STREETS)], row // len(_STREETS)
            name = f"{street} Street" if round_ == 0 else f"{street} Street {round_ + 1}"
            yield (
                f"<traffic/segment/{number}> a traffic:RoadSegment ; "
                f'schema:name "{name}, block {block + 1}" ; '
                f"traffic:freeFlowSpeed {segment.free} ; "
                f"traffic:length {200 + 37 * number % 500} ; "
                f"traffic:leadsTo <traffic/segment/{(number + 1) % count}> , "
                f"<traffic/segment/{(number + self._width) % count}> .\n"
            )

    def events(self) -> Iterator[tuple[int, str]]:
        instant = 7 * HOUR
        number = 0
        calendar = Calendar()
        pause = _TICK // (2 * len(self._segments))
        while True:
            rush = _rush(instant % DAY)
            self._flow(rush)
            for place, segment in enumerate(self._segments):
                number += 1
                time = instant + 2 * pause * place
                yield _TRAFFIC, self._traffic(calendar.lexical(time), number, place, rush)
                text = _POLLUTION_EVENT.format(
                    graph=f"<http://example.org/traffic/pollution/{number}>",
                    time=calendar.lexical(time + pause),
                    n=number,
                    segment=place,
                    level=int(segment.level),
                )
                yield _POLLUTION, text
            instant += _TICK

    def _traffic(self, time: str, number: int, place: int, rush: float) -> str:
        segment, random = self._segments[place], self._random
        share = 0.15 + 0.2 * random.random() if segment.jammed else 0.95 - 0.2 * random.random()
        vehicles = 4 + 20 * rush + (12 if segment.jammed else 0) + 8 * random.random()
        return _TRAFFIC_EVENT.format(
            graph=f"<http://example.org/traffic/traffic/{number}>",
            time=time,
            n=number,
            segment=place,
            speed=decimal(int(100 * segment.free * share * (1 - 0.15 * rush))),
            vehicles=int(vehicles),
        )

    def _flow(self, rush: float) -> None:
        """Simulate five minutes: jams begin, end and spread, and the air follows them."""
        random = self._random
        segments = self._segments
        spreading = []
        for place, segment in enumerate(segments):
            if segment.jammed:
                segment.jammed -= 1
                if segment.onset and random.random() < 0.7:
                    spreading.append(place)
                segment.onset = False
            elif random.random() < 0.002 + 0.01 * rush:
                self._jam(segment)
            target = 130 if segment.jammed else 30 + 30 * rush
            segment.level += (target - segment.level) * (0.5 + 0.3 * random.random())
        for place in spreading:
            step = 1 if random.random() < 0.5 else self._width
            upstream = segments[place - step]
            if not upstream.jammed:
                self._jam(upstream)

    def _jam(self, segment: _Segment) -> None:
        segment.jammed = whole(self._random, 2, 4)
        segment.onset = True


def _rush(time: int) -> float:
    """The intensity of the rush hour, from 0 to 1."""
    morning = arch((time - 6 * HOUR - 30 * MINUTE) / (3 * HOUR))
    evening = arch((time - 15 * HOUR) / (4 * HOUR))
    return max(morning, evening)


TRAFFIC = Dataset(_STREAMS, QUERY, _City)
