"""Stock: trades of companies whose prices follow fractal curves.

There is one stream. A trade has the price of a company and the number of shares. A few companies
have most of the trades, and trades can share a timestamp. The knowledge base has the name, ticker
symbol, sector and seat of each company.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from spaseq.generate.chance import Fractal, between, decimal, whole
from spaseq.generate.dataset import Dataset
from spaseq.generate.framing import DAY, HOUR, MINUTE, Calendar, event_template, turtle_header

_OPEN = 9 * HOUR + 30 * MINUTE
_CLOSE = 16 * HOUR
_PACE = 20_000
"""The mean time between two trades of an average company, in milliseconds."""

_SYLLABLES = ("Al", "Be", "Cor", "Del", "Em", "Fin", "Gal", "Hel", "Kel", "Lum", "Tor")
_ENDINGS = ("tech", "gen", "works", "line", "mar", "tron", "nova", "wood")
_NAMES = len(_SYLLABLES) * len(_ENDINGS)
"""The two lengths have no common divisor, so one counter for both produces every pair."""
_SECTORS = ("Energy", "Retail", "Software", "Health", "Transport")
_SEATS = ("Lyon", "Turin", "Ghent", "Porto", "Graz", "Aarhus")

_TRADE = event_template(
    '<stock/company/{company}> stock:price "{price}"^^xsd:decimal',
    '<stock/company/{company}> stock:volume "{volume}"^^xsd:integer',
)

QUERY = """\
# A V: a price falls in at least three trades in a row, by more than three percent. It then rises
# with every trade, and ends above the price from which it started to fall.
PREFIX schema: <https://schema.org/>
PREFIX stock: <http://w3id.org/spaseq/stock#>

SELECT ?company ?name ?sector ?top (?low AS ?bottom) (COUNT(Fall) AS ?falls)
       (COUNT(Rise) AS ?rises) ?back
WITHIN 10 MINUTES
FROM STREAM trades <http://example.org/stock/trades>
FROM NAMED <http://example.org/stock/kb>
PARTITION BY (?company)
EMIT MAX
WHERE {
  SEQ(Start , Fall{3,} , Rise+ , Above)

  DEFINE GPM Start ON trades {
    ?company stock:price ?top .
    GRAPH <http://example.org/stock/kb> { ?company schema:name ?name ; stock:sector ?sector }
  }
  DEFINE GPM Fall ON trades {
    ?company stock:price ?low .
    FILTER(?low < PREV(?low, ?top))
  }
  DEFINE GPM Rise ON trades {
    ?company stock:price ?up .
    FILTER(?up > PREV(?up, ?low) && ?up <= ?top && ?low < 0.97 * ?top)
  }
  DEFINE GPM Above ON trades {
    ?company stock:price ?back .
    FILTER(?back > ?top)
  }
}
"""


class _Stock:
    def __init__(self, events: int, random: Random) -> None:
        self._random = random
        companies = between(4, events // 100, 500)
        self._base = [whole(random, 10_00, 300_00) for _ in range(companies)]
        self._curves = [Fractal(random) for _ in range(companies)]

    def knowledge(self) -> Iterator[str]:
        yield turtle_header(("schema", "stock"))
        for number in range(len(self._base)):
            name = _SYLLABLES[number % len(_SYLLABLES)] + _ENDINGS[number % len(_ENDINGS)]
            if number >= _NAMES:
                name = f"{name} {number // _NAMES + 1}"
            yield (
                f"<stock/company/{number}> a schema:Corporation ; "
                f'schema:name "{name}" ; schema:tickerSymbol "{name[:3].upper()}{number}" ; '
                f'stock:sector "{_SECTORS[number % len(_SECTORS)]}" ; '
                f'schema:location "{_SEATS[number % len(_SEATS)]}" .\n'
            )

    def events(self) -> Iterator[tuple[int, str]]:
        random, calendar = self._random.random, Calendar()
        companies = len(self._base)
        pause = 2 * _PACE / companies
        instant = _OPEN
        number = 0
        while True:
            number += 1
            company = int(companies * random() * random())
            price = int(self._base[company] * (1 + 0.4 * self._curves[company].step()))
            text = _TRADE.format(
                graph=f"<http://example.org/stock/trade/{number}>",
                time=calendar.lexical(instant),
                company=company,
                price=decimal(price),
                volume=10 * (1 + int(100 * random() * random())),
            )
            yield 0, text
            instant += int(pause * random())
            if instant % DAY >= _CLOSE:
                instant += DAY - instant % DAY + _OPEN


STOCK = Dataset(("trades",), QUERY, _Stock)
