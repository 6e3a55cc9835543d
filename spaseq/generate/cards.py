"""Cards: payments, some of them attempts with stolen cards.

There are two streams: payments, and confirmations of the next payment by card holders. Most
payments are ordinary. An attack is a few tiny payments with one card, followed within minutes by a
payment far above the usual amount of its account. Before one attack in four the holder confirms the
payment, so it is no fraud. The knowledge base names the account of each card, the usual amount and
the bank of each account, and the country of each merchant.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from random import Random

from spaseq.generate.chance import between, decimal, whole
from spaseq.generate.dataset import Dataset
from spaseq.generate.framing import DAY, HOUR, Calendar, event_template, turtle_header

_STREAMS = ("payments", "confirmations")
_PAYMENT, _CONFIRMATION = range(2)
_PACE = 2 * HOUR
"""The mean time between two payments of a card by day."""

_ATTACKS = 0.012
"""The number of attacks per ordinary payment."""

_BANKS = ("Harbour Savings", "First Meridian", "Union of Crafts", "Alpine Trust", "Nova Credit")
_COUNTRIES = ("FR", "DE", "IT", "ES", "NL", "DK")

_PAYMENT_EVENT = event_template(
    "<cards/payment/{n}> a cards:Payment",
    "<cards/payment/{n}> cards:card <cards/card/{card}>",
    '<cards/payment/{n}> cards:amount "{amount}"^^xsd:decimal',
    "<cards/payment/{n}> cards:merchant <cards/merchant/{merchant}>",
)
_CONFIRMATION_EVENT = event_template(
    "<cards/confirmation/{n}> a cards:Confirmation",
    "<cards/confirmation/{n}> cards:card <cards/card/{card}>",
)

QUERY = """\
# Big after small: at least two tiny payments with a card, then one of more than ten times the
# usual amount of its account, without a confirmation by the holder in between.
PREFIX schema: <https://schema.org/>
PREFIX cards: <http://w3id.org/spaseq/cards#>

SELECT ?card ?bankName ?usual (COUNT(Small) AS ?trials) (SUM(?small) AS ?tried) ?big ?country
WITHIN 15 MINUTES
FROM STREAM payments <http://example.org/cards/payments>
FROM STREAM confirmations <http://example.org/cards/confirmations>
FROM NAMED <http://example.org/cards/kb>
PARTITION BY (?card)
EMIT MAX
WHERE {
  SEQ(Small{2,} ; !Confirmed ; Big)

  DEFINE GPM Small ON payments {
    ?p cards:card ?card ; cards:amount ?small .
    FILTER(?small < 5)
  }
  DEFINE GPM Confirmed ON confirmations { ?c a cards:Confirmation ; cards:card ?card }
  DEFINE GPM Big ON payments {
    ?q cards:card ?card ; cards:amount ?big ; cards:merchant ?merchant .
    GRAPH <http://example.org/cards/kb> {
      ?card cards:account ?account .
      ?account cards:usualAmount ?usual ; cards:bank ?bank .
      ?bank schema:name ?bankName .
      ?merchant schema:addressCountry ?country .
    }
    FILTER(?big > 10 * ?usual)
  }
}
"""


class _Cards:
    def __init__(self, events: int, random: Random) -> None:
        self._random = random
        accounts = between(8, events // 40, 4000)
        self._usual = [whole(random, 20_00, 120_00) for _ in range(accounts)]
        self._merchants = between(6, events // 100, 2000)
        self._pending: list[tuple[int, int, int, int, int]] = []
        """A heap of the future events of attacks: time, number, stream, card, amount."""
        self._planned = 0

    @property
    def _cards(self) -> int:
        """The number of cards: every fourth account has a second card."""
        return len(self._usual) + len(self._usual) // 4

    def _account(self, card: int) -> int:
        return card if card < len(self._usual) else 4 * (card - len(self._usual))

    def knowledge(self) -> Iterator[str]:
        yield turtle_header(("schema", "cards"))
        for number, bank in enumerate(_BANKS):
            yield f'<cards/bank/{number}> a schema:BankOrCreditUnion ; schema:name "{bank}" .\n'
        for merchant in range(self._merchants):
            country = _COUNTRIES[merchant % len(_COUNTRIES)]
            yield f'<cards/merchant/{merchant}> schema:addressCountry "{country}" .\n'
        for account, usual in enumerate(self._usual):
            yield (
                f"<cards/account/{account}> a schema:BankAccount ; "
                f"cards:usualAmount {decimal(usual)} ; "
                f"cards:bank <cards/bank/{account % len(_BANKS)}> .\n"
            )
        for card in range(self._cards):
            yield (
                f"<cards/card/{card}> a schema:PaymentCard ; "
                f"cards:account <cards/account/{self._account(card)}> .\n"
            )

    def events(self) -> Iterator[tuple[int, str]]:
        random = self._random.random
        calendar = Calendar()
        cards = self._cards
        instant = 8 * HOUR
        number = 0
        while True:
            night = 4 if instant % DAY < 7 * HOUR else 1
            instant += 1 + int(2 * night * _PACE / cards * random())
            while self._pending and self._pending[0][0] <= instant:
                time, _, stream, card, amount = heappop(self._pending)
                number += 1
                yield stream, self._text(calendar.lexical(time), number, stream, card, amount)
            card = int(cards * random())
            number += 1
            amount = 50 + int(3 * self._usual[self._account(card)] * random() * random())
            yield _PAYMENT, self._text(calendar.lexical(instant), number, _PAYMENT, card, amount)
            if random() < _ATTACKS:
                self._plan_attack(instant, int(cards * random()))

    def _plan_attack(self, time: int, card: int) -> None:
        random = self._random
        for _ in range(whole(random, 2, 4)):
            time += whole(random, 20, 90) * 1000
            self._plan(time, _PAYMENT, card, whole(random, 50, 499))
        time += whole(random, 20, 60) * 1000
        if random.random() < 0.25:
            self._plan(time, _CONFIRMATION, card, 0)
        time += whole(random, 20, 120) * 1000
        usual = self._usual[self._account(card)]
        self._plan(time, _PAYMENT, card, whole(random, 12 * usual, 30 * usual))

    def _plan(self, time: int, stream: int, card: int, amount: int) -> None:
        self._planned += 1
        heappush(self._pending, (time, self._planned, stream, card, amount))

    def _text(self, time: str, number: int, stream: int, card: int, amount: int) -> str:
        if stream == _CONFIRMATION:
            graph = f"<http://example.org/cards/confirmation/{number}/event>"
            return _CONFIRMATION_EVENT.format(graph=graph, time=time, n=number, card=card)
        return _PAYMENT_EVENT.format(
            graph=f"<http://example.org/cards/payment/{number}/event>",
            time=time,
            n=number,
            card=card,
            amount=decimal(amount),
            merchant=int(self._merchants * self._random.random()),
        )


CARDS = Dataset(_STREAMS, QUERY, _Cards)
