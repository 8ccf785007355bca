"""UTM against values of PROJ 9.5.1 and against the length of the meridian."""

from __future__ import annotations

from math import cos, radians, sin, sqrt

import pytest

from sim_vehicles.maps.utm import EQUATOR_M, FLATTENING, SCALE, Geodetic, utm, zone_of


@pytest.mark.parametrize(
    ("latitude", "longitude", "zone", "easting", "northing"),
    [
        (0.0, 0.0, 31, 166021.443081, 0.0),
        (0.00911042581, 0.00903120257, 31, 167027.778269, 1008.358663),
        (49.0034, 8.4233, 32, 457821.675587, 5427993.955442),
        (-33.8568, 151.2153, 56, 334900.569652, -3747711.247112),
        (60.0, -179.5, 60, 695161.172731, 6656575.859116),
        (45.0, 12.9, 32, 807379.888533, 4990353.436969),
        (83.5, 3.0, 31, 500000.0, 9272275.871019),
    ],
)
def test_places_are_those_of_proj(
    latitude: float, longitude: float, zone: int, easting: float, northing: float
) -> None:
    assert utm(Geodetic(latitude, longitude), zone) == pytest.approx((easting, northing), abs=1e-6)


@pytest.mark.parametrize("latitude", [1.0, 35.0, -52.0, 80.0])
def test_on_the_central_meridian_northing_is_its_scaled_length(latitude: float) -> None:
    """The integral of the radius of curvature by Simpson's rule."""
    square = FLATTENING * (2 - FLATTENING)
    steps = 2000
    step = radians(latitude) / steps

    def radius_m(k: int) -> float:
        return EQUATOR_M * (1 - square) / sqrt(1 - square * sin(k * step) ** 2) ** 3

    weights = ((4 if k % 2 else 2) if 0 < k < steps else 1 for k in range(steps + 1))
    length_m = step / 3 * sum(weight * radius_m(k) for k, weight in enumerate(weights))
    assert utm(Geodetic(latitude, 9.0), 32) == pytest.approx((500_000.0, SCALE * length_m), abs=1e-5)


def test_it_is_conformal() -> None:
    """East and north turn by the same angle and stretch alike."""
    step, latitude, longitude = 1e-5, 48.0, 11.7
    square = FLATTENING * (2 - FLATTENING)
    root = sqrt(1 - square * sin(radians(latitude)) ** 2)
    north_m = EQUATOR_M * (1 - square) / root**3 * radians(step)
    east_m = EQUATOR_M / root * cos(radians(latitude)) * radians(step)
    x0, y0 = utm(Geodetic(latitude, longitude), 32)
    north, east = utm(Geodetic(latitude + step, longitude), 32), utm(Geodetic(latitude, longitude + step), 32)
    along_north = complex(north[0] - x0, north[1] - y0) / north_m
    along_east = complex(east[0] - x0, east[1] - y0) / east_m
    assert along_north == pytest.approx(1j * along_east, abs=1e-6)


@pytest.mark.parametrize(
    ("longitude", "zone"), [(0.0, 31), (-0.1, 30), (8.4, 32), (-180.0, 1), (179.9, 60), (180.0, 1)]
)
def test_zones(longitude: float, zone: int) -> None:
    assert zone_of(longitude) == zone


@pytest.mark.parametrize(
    "place", [Geodetic(85, 3), Geodetic(0, 14), Geodetic(float("nan"), 3), Geodetic(0, float("nan"))]
)
def test_places_out_of_reach_are_refused(place: Geodetic) -> None:
    with pytest.raises(ValueError):
        utm(place, 31)
