"""The functions of GeoSPARQL's namespace `geof:`, over decoded values.

Geometries are literals of `geo:wktLiteral` and `geo:geoJSONLiteral` in CRS84, longitude first, in
degrees. pyoxigraph decides the topological relations and computes envelopes and hulls, in the plane
of longitude and latitude. `distance` and `buffer` are on the WGS 84 ellipsoid and need the extra
`geo` (shapely, pyproj). Distances between points are geodesics. Other distances start from the
nearest points in an azimuthal equidistant projection around one of them; `buffer` uses the
projection around the centre. Both are accurate where the geometries extend over some hundred
kilometres, and do not treat the antimeridian.

A literal of another reference system, an invalid one, or an unknown unit is an error.
Cost: some 10 µs for a distance between points, more for other geometries; parsed geometries and
results of pyoxigraph are cached. Source: GeoSPARQL 1.1, section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any

import pyoxigraph as ox

from spaseq.errors import SpaseqError
from spaseq.gpm.python import pyoxigraph_call
from spaseq.rdf.native._values import INTEGER, IRI, OTHER, POINT, Value, decode, double, to_double
from spaseq.sparql.builtins import GEOF
from spaseq.sparql.units import METRES

_GEO = "http://www.opengis.net/ont/geosparql#"
WKT = ox.NamedNode(_GEO + "wktLiteral")
GEO_JSON = ox.NamedNode(_GEO + "geoJSONLiteral")
_CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_NEEDS_LIBRARIES = frozenset((GEOF + "distance", GEOF + "buffer"))
_NUMBERS = range(INTEGER, POINT)


class _Libraries:
    """shapely and pyproj, imported at the first call that needs them.

    Raises:
        SpaseqError: if they are not installed.
    """

    def __init__(self) -> None:
        try:
            import pyproj
            import shapely
        except ImportError as error:
            raise SpaseqError(
                f"geof:distance and geof:buffer need {error.name}: install spaseq[geo]"
            ) from error
        self.shapely = shapely
        self.pyproj = pyproj
        self.geod = pyproj.Geod(ellps="WGS84")


@cache
def _libraries() -> _Libraries:
    return _Libraries()


def check_installed(names: Iterable[str]) -> None:
    """Check that the libraries are installed that functions with these IRIs need.

    Raises:
        SpaseqError: if they are not.
    """
    if not _NEEDS_LIBRARIES.isdisjoint(names):
        _libraries()


def _literal(value: Value) -> ox.Literal | None:
    """The literal of a geometry; None for any other term."""
    term = value.term
    if value.kind != OTHER or not isinstance(term, ox.Literal):
        return None
    return term if term.datatype in (WKT, GEO_JSON) else None


@lru_cache(maxsize=1 << 14)
def _shape(text: str, is_wkt: bool) -> Any:
    """The geometry of a literal; None for one that is invalid, empty or in another system."""
    shapely = _libraries().shapely
    if is_wkt and text.lstrip().startswith("<"):
        system, _, text = text.lstrip()[1:].partition(">")
        if system != _CRS84:
            return None
    try:
        found = shapely.from_wkt(text) if is_wkt else shapely.from_geojson(text)
    except (shapely.errors.ShapelyError, ValueError, TypeError):
        return None
    if found is None or found.is_empty:
        return None
    west, south, east, north = found.bounds
    return found if west >= -180 and east <= 180 and south >= -90 and north <= 90 else None


def _geometry(value: Value) -> Any:
    literal = _literal(value)
    return None if literal is None else _shape(literal.value, literal.datatype == WKT)


def _metres(unit: Value) -> float | None:
    return METRES.get(unit.text) if unit.kind == IRI else None


@lru_cache(maxsize=256)
def _projection(longitude: float, latitude: float) -> Any:
    """The azimuthal equidistant projection around a point."""
    pyproj = _libraries().pyproj
    text = f"+proj=aeqd +lon_0={longitude!r} +lat_0={latitude!r} +datum=WGS84 +units=m"
    return pyproj.Transformer.from_crs("OGC:CRS84", text, always_xy=True)


def _between(first: Any, second: Any) -> float:
    """The distance of two geometries in metres."""
    found = _libraries()
    shapely = found.shapely
    if not first.geom_type == second.geom_type == "Point":
        if first.intersects(second):
            return 0.0
        near = shapely.get_coordinates(shapely.shortest_line(first, second))[0]
        projection = _projection(round(float(near[0]), 6), round(float(near[1]), 6))
        shortest = shapely.shortest_line(
            _transformed(first, projection, "FORWARD"), _transformed(second, projection, "FORWARD")
        )
        shortest = _transformed(shortest, projection, "INVERSE")
    else:
        shortest = shapely.shortest_line(first, second)
    (x, y), (further_x, further_y) = shapely.get_coordinates(shortest)
    return float(found.geod.inv(x, y, further_x, further_y)[2])


def _transformed(shape: Any, projection: Any, direction: str) -> Any:
    """A geometry in the plane of a projection, or back in longitude and latitude (`INVERSE`)."""
    import numpy as np

    def transform(coordinates: Any) -> Any:
        x, y = projection.transform(coordinates[:, 0], coordinates[:, 1], direction=direction)
        return np.column_stack((x, y))

    return _libraries().shapely.transform(shape, transform)


def distance(a: Value, b: Value, unit: Value) -> Value | None:
    """geof:distance."""
    scale = _metres(unit)
    first, second = _geometry(a), _geometry(b)
    if scale is None or first is None or second is None:
        return None
    return double(_between(first, second) / scale)


def buffer(a: Value, radius: Value, unit: Value) -> Value | None:
    """geof:buffer: a quarter of a circle has 32 segments."""
    scale, shape = _metres(unit), _geometry(a)
    if scale is None or shape is None or radius.kind not in _NUMBERS:
        return None
    found = _libraries()
    centre = shape.centroid
    projection = _projection(round(centre.x, 6), round(centre.y, 6))
    flat = _transformed(shape, projection, "FORWARD")
    try:
        wide = flat.buffer(to_double(radius) * scale, quad_segs=32)
        wide = _transformed(wide, projection, "INVERSE")
    except (found.shapely.errors.ShapelyError, found.pyproj.exceptions.ProjError, ValueError):
        return None
    literal = _literal(a)
    assert literal is not None
    if literal.datatype == WKT:
        return decode(ox.Literal(f"<{_CRS84}> {wide.wkt}", datatype=WKT))
    return decode(ox.Literal(found.shapely.to_geojson(wide), datatype=GEO_JSON))


def _by_pyoxigraph(name: str) -> Callable[..., Value | None]:
    """A function of geometries that pyoxigraph computes, in the plane of the coordinates."""
    function = f"<{GEOF}{name}>"

    def compute(*arguments: Value) -> Value | None:
        if any(_literal(argument) is None for argument in arguments):
            return None
        result = pyoxigraph_call.call(function, tuple([a.term for a in arguments]))
        return None if result is None else decode(result)

    return compute


envelope = _by_pyoxigraph("envelope")
convex_hull = _by_pyoxigraph("convexHull")
sf_contains = _by_pyoxigraph("sfContains")
sf_crosses = _by_pyoxigraph("sfCrosses")
sf_disjoint = _by_pyoxigraph("sfDisjoint")
sf_equals = _by_pyoxigraph("sfEquals")
sf_intersects = _by_pyoxigraph("sfIntersects")
sf_overlaps = _by_pyoxigraph("sfOverlaps")
sf_touches = _by_pyoxigraph("sfTouches")
sf_within = _by_pyoxigraph("sfWithin")
