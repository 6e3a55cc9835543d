"""Units of lengths, by the IRIs of OGC and QUDT, in metres.

The length of an angle is that of its arc on a circle with the Earth's mean radius. Sources: OGC's
register of units of measure, the vocabulary of units of QUDT 2.1.
"""

from __future__ import annotations

from math import pi

OGC = "http://www.opengis.net/def/uom/OGC/1.0/"
QUDT = "http://qudt.org/vocab/unit/"
MEAN_RADIUS = 6371008.7714
"""The mean radius of the Earth in metres (WGS 84)."""

METRES = {
    OGC + "metre": 1.0,
    OGC + "degree": MEAN_RADIUS * pi / 180,
    OGC + "radian": MEAN_RADIUS,
    QUDT + "M": 1.0,
    QUDT + "KiloM": 1000.0,
    QUDT + "CentiM": 0.01,
    QUDT + "MilliM": 0.001,
    QUDT + "MI": 1609.344,
    QUDT + "MI_N": 1852.0,
    QUDT + "YD": 0.9144,
    QUDT + "FT": 0.3048,
    QUDT + "DEG": MEAN_RADIUS * pi / 180,
    QUDT + "RAD": MEAN_RADIUS,
}
"""Unit → its length in metres."""
