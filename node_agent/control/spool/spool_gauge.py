"""How full the spool is, how old its oldest record, and when it will be full: said before anything has to be dropped.

Segments are looked at now and then. The age is that of the oldest segment that the coordinator has not collected: since
it was first seen, and for one that was there when control began, since its file was last written.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from node_agent.control.spool.spool_protocol import Spool
from node_agent.host.log import ERROR, WARNING, Log

LOOK_NS = 1_000_000_000
SPAN_NS = 600_000_000_000  # the present rate is that of so long at most
MOST_LOOKS = 60
STAGES = (50, 80, 100)  # per cent, at which the log says so

Place = tuple[int, int]  # of a segment: boot, number of its first record


class SpoolLevel(NamedTuple):
    """oldest_ns: age of the oldest record that is not collected, 0: there is none. full_in_ns: at the present rate;
    0: it is full, None: it does not fill, or that is not known yet."""

    bytes: int
    limit_bytes: int
    oldest_ns: int
    full_in_ns: int | None

    @property
    def per_cent(self) -> int:
        """Rounded down."""
        return 100 if self.full_in_ns == 0 else min(99, self.bytes * 100 // self.limit_bytes)


class SpoolGauge:
    """Call `look` about each second; told: whether records have been dropped since the one before."""

    def __init__(self, spool: Spool, log: Log, age_ns: Callable[[Place], int] = lambda place: 0) -> None:
        """age_ns: how long ago the file of a segment was written, for those that are there already."""
        self._spool, self._log = spool, log
        self._begun: dict[Place, int] = {}
        self._first_look = True
        self._age_ns = age_ns
        self._looks: deque[tuple[int, int]] = deque(maxlen=MOST_LOOKS)  # instant, bytes
        self._stage = 0
        self.now = SpoolLevel(0, spool.limit_bytes, 0, None)

    def look(self, at_ns: int, dropped: bool = False) -> SpoolLevel:
        """The fullness now. dropped: records were, since the look before: there was no room for them."""
        used, limit = self._spool.bytes, self._spool.limit_bytes
        looks = self._looks
        if looks and used < looks[-1][1]:
            looks.clear()  # something was collected
        while looks and at_ns - looks[0][0] > SPAN_NS:
            looks.popleft()
        if not looks or at_ns - looks[-1][0] >= SPAN_NS // MOST_LOOKS:
            looks.append((at_ns, used))
        self.now = SpoolLevel(used, limit, self._oldest_ns(at_ns), self._full_in_ns(at_ns, used, dropped))
        self._tell()
        return self.now

    def _full_in_ns(self, at_ns: int, used: int, dropped: bool) -> int | None:
        left = self._spool.limit_bytes - used
        if dropped or left <= 0:
            return 0
        since_ns, then = self._looks[0]
        grown, took_ns = used - then, at_ns - since_ns
        return max(1, left * took_ns // grown) if grown > 0 and took_ns > 0 else None

    def _oldest_ns(self, at_ns: int) -> int:
        here = [(boot, segment.first) for boot, each in self._spool.incarnations.items() for segment in each.segments]
        begun, first = self._begun, self._first_look
        self._begun = {
            place: begun[place] if place in begun else at_ns - (self._age_ns(place) if first else 0) for place in here
        }
        self._first_look = False
        return max(1, at_ns - min(self._begun.values())) if here else 0

    def _tell(self) -> None:
        per_cent = self.now.per_cent
        stage = max((each for each in STAGES if per_cent >= each), default=0)
        if stage > self._stage:
            level = ERROR if stage == STAGES[-1] else WARNING
            self._log.say("spool_filling", f"trace: {level_text(self.now)}", level, per_cent=per_cent)
        self._stage = stage


def level_text(filled: SpoolLevel) -> str:
    """For people."""
    age = f"the oldest record has waited for {filled.oldest_ns // 10**9} s"
    if filled.full_in_ns == 0:
        return f"the spool is full ({filled.limit_bytes >> 20} MiB), records are dropped; {age}: 'coordinator collect'"
    when = f", and in {filled.full_in_ns // 10**9} s it is full" if filled.full_in_ns is not None else ""
    return f"the spool is {filled.per_cent} % full{when}; {age}: 'coordinator collect' makes room"
