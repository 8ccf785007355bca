"""Generation rules of CAM and CPM as state machines over motion: they say when a station sends.

CAM: ETSI EN 302 637-2 V1.4.1, 6.1.3. CPM: ETSI TS 103 324 V2.1.1, 6.1.2 and 6.1.3 (vehicles as objects; the rules for
pedestrians, sensors and free space are left out). Channels are taken as free: congestion control allows a message
every 100 ms. Nothing here knows a clock: each rule is told the instant, in ns, and must be asked every 100 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot, radians

from sim_vehicles.world.motion import State, wrap

CHECK_NS = 100_000_000  # T_CheckCamGen, T_CheckCpmGen
SHORTEST_NS = 100_000_000  # T_GenCamMin (and T_GenCam_Dcc), T_GenCpmMin
LONGEST_NS = 1_000_000_000  # T_GenCamMax, T_GenCpmMax
BY_TIME = 3  # N_GenCam: after so many CAMs without a change the interval is the longest again
POSITION_M, SPEED_MPS, HEADING_RAD = 4.0, 0.5, radians(4.0)


def changed(before: State, now: State) -> bool:
    """Position by more than 4 m, speed by more than 0.5 m/s, or heading by more than 4 degrees."""
    return (
        hypot(now.x_m - before.x_m, now.y_m - before.y_m) > POSITION_M
        or abs(now.speed_mps - before.speed_mps) > SPEED_MPS
        or abs(wrap(now.heading_rad - before.heading_rad)) > HEADING_RAD
    )


class CamRule:
    """One station's CAMs. A change triggers one at the next check, and its interval is kept for `BY_TIME` more."""

    def __init__(self) -> None:
        self._last: tuple[int, State] | None = None
        self._interval_ns = LONGEST_NS  # T_GenCam
        self._by_time = 0

    def due(self, at_ns: int, state: State) -> bool:
        """Whether the station generates a CAM now; it then counts as sent."""
        if self._last is not None:
            since_ns, before = at_ns - self._last[0], self._last[1]
            if since_ns < SHORTEST_NS:
                return False
            if changed(before, state):
                self._interval_ns, self._by_time = min(since_ns, LONGEST_NS), 0
            elif since_ns >= self._interval_ns:
                self._by_time += 1
                if self._by_time >= BY_TIME:
                    self._interval_ns, self._by_time = LONGEST_NS, 0
            else:
                return False
        self._last = (at_ns, state)
        return True


class CpmRule:
    """One station's CPMs. An object goes in if it is new, has changed since it was last in one, or was in none for 1 s;
    a message is generated if an object goes in, and after 1 s without one in any case."""

    def __init__(self, interval_ns: int = SHORTEST_NS) -> None:
        """interval_ns: T_GenCpm, 100 to 1000 ms, set by congestion control. ValueError outside."""
        if not SHORTEST_NS <= interval_ns <= LONGEST_NS:
            raise ValueError(f"{interval_ns} ns is no interval between CPMs; they are sent every 100 to 1000 ms")
        self._interval_ns = interval_ns
        self._last_ns: int | None = None
        self._sent: dict[str, tuple[int, State]] = {}

    def due(self, at_ns: int, objects: Mapping[str, State]) -> list[str] | None:
        """Which of the perceived objects the station's CPM has now, in their order (it then counts as sent). Empty: a
        CPM without objects. None: no CPM."""
        since_ns = LONGEST_NS if self._last_ns is None else at_ns - self._last_ns
        if since_ns < self._interval_ns:
            return None
        included = [name for name, state in objects.items() if self._goes_in(at_ns, name, state)]
        if not included and since_ns < LONGEST_NS:
            return None
        self._last_ns = at_ns
        self._sent = {name: one for name, one in self._sent.items() if at_ns - one[0] < LONGEST_NS}
        self._sent.update({name: (at_ns, objects[name]) for name in included})
        return included

    def _goes_in(self, at_ns: int, name: str, state: State) -> bool:
        # Forgotten after 1 s, whether seen in between or not: "new" and "in none for 1 s" are then one question.
        before = self._sent.get(name)
        return before is None or at_ns - before[0] >= LONGEST_NS or changed(before[1], state)
