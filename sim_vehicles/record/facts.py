"""Facts of a recording of the crossing, computed from the motion and the buildings alone, not from SUMO's figures."""

from __future__ import annotations

from typing import TypedDict

from sim_vehicles.encounter.verdict import Judge
from sim_vehicles.record.intersection import STEP_S
from sim_vehicles.world.geometry import box, gap
from sim_vehicles.world.motion import Motion, State
from sim_vehicles.world.scene import Scenario, Scene
from sim_vehicles.world.sight import perceived, visible


class Facts(TypedDict):
    """Seconds of the recording's time; metres. `*_left_m`: from A's front to the strip that X's box sweeps, at that
    time, along A's path (as the judge has it)."""

    collision_s: float | None
    least_gap_m: float
    least_gap_s: float
    first_perceived_s: dict[str, float | None]
    first_perceived_left_m: dict[str, float | None]
    a_sees_a_corner_s: float | None
    a_sees_a_corner_left_m: float | None


def facts(motion: Motion, scene: Scene) -> Facts:
    """Collision and least gap of ego and crossing vehicle; when each station and the ego first perceive the latter."""
    if scene.crossing is None:
        raise ValueError("the scene has no crossing vehicle")
    count = round((motion.end_s - motion.start_s) / STEP_S)
    instants = [round(motion.start_s + i * STEP_S, 6) for i in range(count + 1)]
    moments = [(t_s, motion.at(t_s)) for t_s in instants]
    gaps = [
        (_gap(motion, scene, states), t_s)
        for t_s, states in moments
        if scene.ego in states and scene.crossing in states
    ]
    least_m, least_s = min(gaps)
    shares = {
        who: [(t_s, visible(motion, scene, who, scene.crossing, states)) for t_s, states in moments]
        for who in (*scene.stations, scene.ego)
    }
    first = {who: next((t_s for t_s, share in seen if perceived(share)), None) for who, seen in shares.items()}
    corner_s = next((t_s for t_s, share in shares[scene.ego] if share > 0), None)
    judge, ego = Judge(Scenario(motion, scene)), motion.tracks[scene.ego]
    return Facts(
        collision_s=least_s if least_m == 0 else None,
        least_gap_m=round(least_m, 2),
        least_gap_s=least_s,
        first_perceived_s=first,
        first_perceived_left_m={who: None if t_s is None else judge.left_m(ego, t_s) for who, t_s in first.items()},
        a_sees_a_corner_s=corner_s,
        a_sees_a_corner_left_m=None if corner_s is None else judge.left_m(ego, corner_s),
    )


def _gap(motion: Motion, scene: Scene, states: dict[str, State]) -> float:
    boxes = []
    for name in (scene.ego, str(scene.crossing)):
        state, track = states[name], motion.tracks[name]
        boxes.append(box(state.x_m, state.y_m, state.heading_rad, track.length_m, track.width_m))
    return gap(boxes[0], boxes[1])
