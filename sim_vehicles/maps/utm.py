"""UTM: latitudes and longitudes of WGS 84 as metres east and north, by Krueger's series.

Krueger 1912 in the form of Karney, "Transverse Mercator with an accuracy of a few nanometers" (2011), to the sixth
order in the third flattening: good to less than a micrometre over several zones.
"""

from __future__ import annotations

from math import asinh, atan2, atanh, cos, cosh, floor, hypot, radians, sin, sinh, sqrt
from typing import NamedTuple

EQUATOR_M = 6_378_137.0  # WGS 84
FLATTENING = 1 / 298.257223563
SCALE = 0.9996  # on the central meridian
FALSE_EASTING_M = 500_000.0
MOST_LATITUDE_DEG = 84.0
MOST_OFF_DEG = 10.0  # from the central meridian; a zone's edge is 3 degrees away

_ECCENTRICITY = sqrt(FLATTENING * (2 - FLATTENING))
_N = FLATTENING / (2 - FLATTENING)
_RADIUS_M = EQUATOR_M / (1 + _N) * (1 + _N**2 / 4 + _N**4 / 64 + _N**6 / 256)
_ALPHA = (
    _N / 2 - 2 / 3 * _N**2 + 5 / 16 * _N**3 + 41 / 180 * _N**4 - 127 / 288 * _N**5 + 7891 / 37800 * _N**6,
    13 / 48 * _N**2 - 3 / 5 * _N**3 + 557 / 1440 * _N**4 + 281 / 630 * _N**5 - 1983433 / 1935360 * _N**6,
    61 / 240 * _N**3 - 103 / 140 * _N**4 + 15061 / 26880 * _N**5 + 167603 / 181440 * _N**6,
    49561 / 161280 * _N**4 - 179 / 168 * _N**5 + 6601661 / 7257600 * _N**6,
    34729 / 80640 * _N**5 - 3418889 / 1995840 * _N**6,
    212378941 / 319334400 * _N**6,
)


class Geodetic(NamedTuple):
    """Degrees, positive to the north and east."""

    latitude_deg: float
    longitude_deg: float


def zone_of(longitude_deg: float) -> int:
    """1 to 60, without the exceptions of Norway and Svalbard."""
    return floor((longitude_deg + 180.0) / 6.0) % 60 + 1


def utm(place: Geodetic, zone: int) -> tuple[float, float]:
    """Easting with its 500 km, and northing from the equator, negative to its south, in metres.

    ValueError beyond 84 degrees of latitude, or over 10 degrees from the middle of the zone.
    """
    off_deg = (place.longitude_deg - (6.0 * zone - 183.0) + 180.0) % 360.0 - 180.0
    if not abs(place.latitude_deg) <= MOST_LATITUDE_DEG or not abs(off_deg) <= MOST_OFF_DEG:
        raise ValueError(f"{place.latitude_deg:g}, {place.longitude_deg:g} is not near zone {zone} of UTM")
    sine, off = sin(radians(place.latitude_deg)), radians(off_deg)
    conformal = sinh(atanh(sine) - _ECCENTRICITY * atanh(_ECCENTRICITY * sine))  # tangent of the conformal latitude
    north, east = atan2(conformal, cos(off)), asinh(sin(off) / hypot(conformal, cos(off)))
    terms = [(alpha, 2 * k * north, 2 * k * east) for k, alpha in enumerate(_ALPHA, 1)]
    northing = north + sum(alpha * sin(n) * cosh(e) for alpha, n, e in terms)
    easting = east + sum(alpha * cos(n) * sinh(e) for alpha, n, e in terms)
    return FALSE_EASTING_M + SCALE * _RADIUS_M * easting, SCALE * _RADIUS_M * northing
