"""Whether one connector is connected to the other system; where it is not, since when, and why."""

import json

from node_agent.host.clock import now_ns

_MOST, _MOST_IN_JSON = 160, 400  # characters of a reason


class ConnectionState:
    """One thread changes it, another one reads. up: now; was_up: ever, since the connector began; why: it is not up."""

    def __init__(self) -> None:
        self.up = self.was_up = False
        self.why = ""
        self._apart_since_ns = now_ns()

    def begin(self) -> None:
        """It is made."""
        self.up = self.was_up = True

    def end(self, why: str) -> None:
        """It is not there, or still not."""
        if self.up:
            self._apart_since_ns = now_ns()
        self.why, self.up = _short(why), False

    @property
    def apart_ns(self) -> int:
        """For how long it has not been up."""
        return 0 if self.up else now_ns() - self._apart_since_ns


def _short(why: str) -> str:
    """As far as a report has room for it."""
    why = why[:_MOST]
    while len(json.dumps(why)) > _MOST_IN_JSON:
        why = why[:-1]
    return why
