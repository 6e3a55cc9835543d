"""A seed → reproducible random choices and natural-looking curves.

The only source of randomness is `random.Random.random`: Python guarantees its sequence for a seed
across versions, which holds for no other method. All other arithmetic is addition,
multiplication and division of floats, whose results IEEE 754 defines exactly; `sin`, `exp` and
`log` differ between C libraries, and `sum` of floats between versions of Python (3.12 made it
more precise).
"""

from __future__ import annotations

from random import Random

_OCTAVES = 7
_SHORTEST = 3
_WEIGHTS = tuple(11**k * 8 ** (_OCTAVES - 1 - k) for k in range(_OCTAVES))
"""The amplitudes: each 1.375 times the one before it."""


class Fractal:
    """A self-similar curve between -1 and 1: one value for each call of `step`.

    It is the sum of seven polylines. Polyline k has a corner at a random height every 3·2^k
    steps, and an amplitude proportional to 1.375^k. The roughness is therefore similar
    at every scale from 3 to 192 steps, as for prices and clouds. Between corners the slopes are
    constant, so a step costs one addition and, amortised, less than one corner.
    """

    __slots__ = ("_amplitudes", "_heights", "_random", "_slope", "_slopes", "_step", "value")

    def __init__(self, random: Random) -> None:
        total = sum(_WEIGHTS)
        self._random = random
        self._amplitudes = [weight / total for weight in _WEIGHTS]
        self._heights = [(2 * random.random() - 1) * part for part in self._amplitudes]
        self._slopes = [0.0] * _OCTAVES
        self._slope = 0.0
        self._step = 0
        self.value = _total(self._heights)

    def step(self) -> float:
        if self._step % _SHORTEST == 0:
            self._turn()
        self._step += 1
        self.value += self._slope
        return self.value

    def _turn(self) -> None:
        """Give every polyline that has reached a corner the slope to its next corner."""
        period = _SHORTEST
        for k in range(_OCTAVES):
            if self._step % period:
                break
            height = (2 * self._random.random() - 1) * self._amplitudes[k]
            self._slopes[k] = (height - self._heights[k]) / period
            self._heights[k] = height
            period *= 2
        self._slope = _total(self._slopes)


def _total(numbers: list[float]) -> float:
    result = 0.0
    for number in numbers:
        result += number
    return result


def arch(phase: float) -> float:
    """A hump from 0 at phase 0 over 1 at phase ½ to 0 at phase 1; 0 outside."""
    return 4 * phase * (1 - phase) if 0 < phase < 1 else 0.0


def whole(random: Random, least: int, most: int) -> int:
    """A uniformly distributed integer from `least` to `most`, inclusive."""
    return least + int(random.random() * (most - least + 1))


def decimal(hundredths: int) -> str:
    """A non-negative number of hundredths as the lexical form of an `xsd:decimal`."""
    return f"{hundredths // 100}.{hundredths % 100:02d}"


def between(least: int, number: int, most: int) -> int:
    """`number` clamped to the range from `least` to `most`."""
    return max(least, min(number, most))
