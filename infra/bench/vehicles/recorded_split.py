"""Which recordings the warning was built on, and which were held out: by name, fixed before any of the latter was run.

INTERACTION: `DR_PLACE_NUMBER` is PLACE/vehicle_tracks_NUMBER.csv. NGSIM (US DOT FHWA) as cut into CommonRoad
scenarios: `USA_Lanker-...`, `USA_Peach-...`. Those of NGSIM that are held out ran once before, under earlier rules.
A recording of NGSIM that shares a vehicle's stretch with one of the other side is in neither. `USA_Lanker-1_2_T-1` is
in neither as well: it is left for others to try.
"""

BUILD = (
    *(f"USA_Lanker-{n}_T-1" for n in ("1_1", "1_3", "2_4", "2_5", "2_6", "2_13", "2_17", "2_19")),
    *(f"USA_Peach-{n}_T-1" for n in ("2_1", "4_2")),
    *(f"DR_CHN_Roundabout_LN_{n}" for n in ("000", "003", "004")),
    *(f"DR_USA_Intersection_EP0_{n}" for n in ("000", "005", "007")),
    *(f"DR_USA_Intersection_EP1_{n}" for n in ("001", "002", "003", "004")),
    *(f"DR_USA_Intersection_GL_{n}" for n in ("002", "008", "054")),
    *(f"DR_USA_Intersection_MA_{n}" for n in ("004", "010")),
    "DR_USA_Roundabout_EP_000",
    *(f"DR_USA_Roundabout_FT_{n}" for n in ("001", "013", "033")),
    *(f"DR_USA_Roundabout_SR_{n}" for n in ("004", "009")),
)
HELD_OUT = (
    *(f"USA_Lanker-{n}_T-1" for n in ("1_7", "1_8", "1_9", "1_10", "2_7", "2_8", "2_10", "2_11", "2_12", "2_15")),
    *(f"USA_Peach-{n}_T-1" for n in ("3_2", "4_3", "4_4")),
    "DR_CHN_Roundabout_LN_002",
    "DR_USA_Intersection_EP0_004",
    "DR_USA_Intersection_EP1_005",
    *(f"DR_USA_Intersection_GL_{n}" for n in ("017", "037", "047")),
    *(f"DR_USA_Intersection_MA_{n}" for n in ("007", "017")),
    "DR_USA_Roundabout_EP_007",
    *(f"DR_USA_Roundabout_FT_{n}" for n in ("007", "027", "037")),
    "DR_USA_Roundabout_SR_007",
)
SPLIT = {"build": BUILD, "held_out": HELD_OUT}

__all__ = ["SPLIT"]
