"""O6 and O5: what the driver is told of hazards that the centre knows."""

from __future__ import annotations

from math import cos, hypot, sin, sqrt

from node_agent.sdk import operator
from protos.vehicle_pb2 import Advice, Ego, Hazard

UNKNOWN_CM = -1
NEVER_MS = 2**32 - 1
MOST_CM = 2**31 - 1


@operator(
    "vehicle.hazard",
    version="1",
    inputs={"hazard": "vehicle.Hazard"},
    side={"ego": "vehicle.Ego"},
    output="vehicle.Advice",
)
class Distance:
    """O6: how far the hazard is in a straight line, and how fast the ego comes nearer -> distance_cm [0.01 m],
    closing_cms [0.01 m/s].

    Both are places on the plane of the scene; the ego's is its last known one (side input), not extrapolated: 0.5 s are
    nothing to an advice with seconds to spare. distance_cm is -1 and closing_cms 0 before the ego's state is known.
    """

    def __call__(self, hazard: Hazard, *, ego: Ego | None) -> Advice:
        """The hazard's id and causes with its distance."""
        advice = Advice(id=hazard.id, cause=hazard.cause, sub_cause=hazard.sub_cause, distance_cm=UNKNOWN_CM)
        if ego is None:
            return advice
        motion = ego.motion
        dx, dy = hazard.x_cm / 100.0 - motion.x_m, hazard.y_cm / 100.0 - motion.y_m
        away_m = hypot(dx, dy)
        towards = dx * cos(motion.heading_rad) + dy * sin(motion.heading_rad)
        closing_mps = motion.speed_mps * towards / away_m if away_m > 0.0 else 0.0
        advice.distance_cm = min(round(100.0 * away_m), MOST_CM)
        advice.closing_cms = round(100.0 * closing_mps)
        return advice


@operator("vehicle.advise", version="1", inputs={"advice": "vehicle.Advice"}, output="vehicle.Advice")
class Advise:
    """O5: time to the hazard at the ego's present speed, and the speed to drive -> time_ms, speed_cms [0.01 m/s].

    time = d / speed towards it; 4294967295 ms (never) where the ego does not come nearer, or its place is unknown.
    advised speed = sqrt(2 b (d - stop)): from it a braking with b = `brake_mps2` (2 m/s2, at ease) stops `stop_m`
    (20 m) before the hazard; 0 within `stop_m`. Never more than `most_mps` (36.1 m/s = 130 km/h, Germany's recommended
    speed): an advice is no leave to go faster. Away from the hazard, or where its distance is unknown: `most_mps`.
    """

    def __init__(self, brake_mps2: float = 2.0, stop_m: float = 20.0, most_mps: float = 36.1) -> None:
        if brake_mps2 <= 0.0 or stop_m < 0.0 or not 0.0 < most_mps <= 100.0:
            raise ValueError("brake_mps2 must be above 0, stop_m not below, most_mps in (0, 100]")
        self._brake_mps2, self._stop_m, self._most_mps = brake_mps2, stop_m, most_mps

    def __call__(self, advice: Advice) -> Advice:
        """The advice with time and speed."""
        out = Advice()
        out.CopyFrom(advice)
        away_m, closing_mps = advice.distance_cm / 100.0, advice.closing_cms / 100.0
        out.time_ms, speed_mps = NEVER_MS, self._most_mps
        if advice.distance_cm >= 0:
            if closing_mps > 0.0:
                out.time_ms = min(round(1000.0 * away_m / closing_mps), NEVER_MS)
            if closing_mps >= 0.0:
                speed_mps = min(sqrt(2.0 * self._brake_mps2 * max(away_m - self._stop_m, 0.0)), self._most_mps)
        out.speed_cms = round(100.0 * speed_mps)
        return out
