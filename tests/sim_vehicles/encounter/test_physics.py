"""The closed form of braking, against the table that was computed by hand from D = v (L + tau) + v^2 / (2 a)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim_vehicles.encounter.physics import KMH, impact_mps, needed_m

REACTION_S, DECELERATION_MPS2 = 0.2, 7.0
LATENCIES_S = (0.3, 0.4, 0.5, 0.7, 1.0)
# km/h: way needed at 300 ms, then the impact speed in km/h at each latency where just that way is left
TABLE = {
    30: (9.1, (0, 12, 17, 25, 30)),
    50: (20.7, (0, 16, 22, 32, 42)),
    70: (36.7, (0, 19, 27, 38, 50)),
}


@pytest.mark.parametrize("speed_kmh", sorted(TABLE))
def test_the_way_to_stand_and_the_impact_speed_by_latency(speed_kmh: int) -> None:
    way_m, impacts_kmh = TABLE[speed_kmh]
    v = speed_kmh / KMH
    needed = needed_m(v, 0.3, REACTION_S, DECELERATION_MPS2)
    assert round(needed, 1) == way_m
    found = [round(impact_mps(v, needed, each, REACTION_S, DECELERATION_MPS2) * KMH) for each in LATENCIES_S]
    assert found == list(impacts_kmh)


def test_what_is_behind_the_reaction_is_hit_at_full_speed() -> None:
    assert impact_mps(10, 1.0, 0.5, 0.2, 7) == 10  # 7 m are driven before the brake bites
    assert impact_mps(10, -3.0, 0.0, 0.0, 7) == 10  # it is there already


@given(
    v=st.floats(0.5, 40),
    latency_s=st.floats(0, 2),
    reaction_s=st.floats(0, 2),
    a=st.floats(1, 12),
    more=st.floats(0, 1),
)
def test_needed_way_and_impact_speed_agree(
    v: float, latency_s: float, reaction_s: float, a: float, more: float
) -> None:
    needed = needed_m(v, latency_s, reaction_s, a)
    assert impact_mps(v, needed + more, latency_s, reaction_s, a) == pytest.approx(0, abs=1e-5)
    shorter = v * (latency_s + reaction_s) + more * v * v / (2 * a)  # the brake bites for that share of its way
    assert impact_mps(v, shorter, latency_s, reaction_s, a) == pytest.approx(v * (1 - more) ** 0.5, abs=1e-5)
