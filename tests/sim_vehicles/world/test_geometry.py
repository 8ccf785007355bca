from math import pi

import pytest

from sim_vehicles.world.geometry import blocked, box, gap, inside, overlap, seen_share

HOUSE = [(2.0, 2.0), (6.0, 2.0), (6.0, 6.0), (2.0, 6.0)]


def test_box_turns_with_its_heading() -> None:
    east = box(10, 0, 0.0, 4, 2)
    assert east[0] == pytest.approx((12, 1))
    north = box(10, 0, pi / 2, 4, 2)
    assert north[0] == pytest.approx((9, 2))


def test_gap_and_overlap() -> None:
    a = box(0, 0, 0.0, 4, 2)
    assert gap(a, box(7, 0, 0.0, 4, 2)) == pytest.approx(3)
    assert gap(a, box(5, 4, 0.0, 4, 2)) == pytest.approx((1 + 4) ** 0.5)
    assert overlap(a, box(2.5, 1, pi / 2, 4, 2))
    assert not overlap(a, box(4, 0, 0.0, 4, 2)), "touching is no overlap"
    # Their axis-parallel hulls overlap, the boxes do not.
    assert gap(a, box(3.3, 2.3, -pi / 4, 4, 2)) > 0


def test_line_of_sight() -> None:
    assert blocked((0, 4), (8, 4), [HOUSE])
    assert blocked((3, 3), (5, 5), [HOUSE]), "both ends within"
    assert not blocked((0, 0), (8, 1), [HOUSE])
    assert not blocked((0, 4), (8, 4), [])
    assert inside((3, 3), HOUSE)
    assert not inside((7, 3), HOUSE)


def test_seen_share_counts_corners_and_centre() -> None:
    car = box(10, 4, 0.0, 4, 2)
    assert seen_share((0, 4), car, []) == 1.0
    assert seen_share((0, 4), car, [HOUSE]) == 0.0
    assert 0 < seen_share((0, 0), box(9, 3.2, 0.0, 4, 2), [HOUSE]) < 1
