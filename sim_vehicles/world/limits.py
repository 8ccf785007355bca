"""What no vehicle is: too large, too fast, off the map. One rule for recordings and for scenes as they were driven."""

from __future__ import annotations

from math import hypot

from sim_vehicles.world.motion import MAX_GAP_S, MAX_SIZE_M, MAX_SPEED_MPS, MAX_TIME_S, State

MAX_PLACE_M = 6e6  # from the plane's origin: farther off there is no latitude (UTM's northing passes up to 54 degrees)


class OffScaleError(ValueError):
    """A value out of all bounds of its unit."""


def check_size(length_m: float, width_m: float) -> None:
    """Raises ValueError where nothing on a road is of that size; so for NaN."""
    for name, value in (("length_m", length_m), ("width_m", width_m)):
        if not 0 < value <= MAX_SIZE_M:
            raise ValueError(f"{name} is {value:g}; it must be in (0, {MAX_SIZE_M:g}] metres")


def check_state(state: State) -> None:
    """Raises OffScaleError where no vehicle is there then, or so fast."""
    if abs(state.t_s) > MAX_TIME_S:
        raise OffScaleError(f"t_s is {state.t_s:g}; over {MAX_TIME_S:g} s is a wrong unit")
    for name, value in (("x_m", state.x_m), ("y_m", state.y_m)):
        if abs(value) > MAX_PLACE_M:
            raise OffScaleError(f"{name} is {value:g}; over {MAX_PLACE_M:g} m from the origin, which must be nearer")
    if abs(state.speed_mps) > MAX_SPEED_MPS:
        raise OffScaleError(f"speed_mps is {state.speed_mps:g}; over {MAX_SPEED_MPS:g} m/s is a wrong unit")


def check_jump(vehicle: str, span_s: float, dx_m: float, dy_m: float, rounding_m: float = 0.0) -> None:
    """From one record of a vehicle to the next. rounding_m: by which places may be off. Raises OffScaleError. Away for
    more than `MAX_GAP_S`, a vehicle may come back anywhere."""
    jump_m = hypot(dx_m, dy_m)
    if jump_m > MAX_SPEED_MPS * span_s + rounding_m and span_s <= MAX_GAP_S:
        raise OffScaleError(
            f"vehicle {vehicle} jumps {jump_m:.0f} m in {span_s:g} s; that is a wrong unit or another vehicle"
        )
