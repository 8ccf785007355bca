"""Announces events in the log: shedding, tuples beyond what was declared, windows that a tuple spoilt."""

from collections.abc import Iterable

from node_agent.host.log import INFO, WARNING
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.deployed_plan import Deployed, EngineSlot

POLICED_EVERY_NS = 60_000_000_000
WINDOWS = "shed.window"  # are no tuples, and told with their cause
CALM_NS = 5_000_000_000  # without a tuple shed, and shedding is over


class EventAnnouncer:
    """Called once a second, and before a status is given."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self._policed_at_ns = 0  # not before this again
        self._shed: dict[str, int] = {}  # as counted at the last look, by policy
        self._before: dict[str, int] | None = None  # as counted when it began; None: nothing is shed now
        self._last_ns = 0  # when more was last found

    def policed(self, at_ns: int, plans: Iterable[Deployed]) -> None:
        """Bring the counters of what was shed up to date; say it at most once a minute, and on few occasions."""
        news = [each for deployed in plans for each in self.policed_of(deployed)]
        if news and at_ns >= self._policed_at_ns:
            self._policed_at_ns = at_ns + POLICED_EVERY_NS
            self.shared.note("policing_told", f"beyond what was declared, and shed: {', '.join(news)}")

    def shedding(self, at_ns: int) -> None:
        """Say when tuples begin to be shed, and when that is over."""
        shed = {name: n for name, n in self.shared.counters.items() if name.startswith("shed.") and name != WINDOWS}
        if shed != self._shed:
            if self._before is None:
                self._before = self._shed
                self._tell("shedding_begins", "tuples are shed", shed, self._shed)
            self._shed, self._last_ns = shed, at_ns
        elif self._before is not None and at_ns - self._last_ns >= CALM_NS:
            self._tell("shedding_ends", "no tuple is shed any more; in all", shed, self._before)
            self._before = None

    def _tell(self, event: str, text: str, shed: dict[str, int], before: dict[str, int]) -> None:
        more = {name.partition(".")[2]: n - before.get(name, 0) for name, n in shed.items()}
        found = {policy: n for policy, n in sorted(more.items()) if n}
        counts_text = ", ".join(f"{n} {policy}" for policy, n in found.items())
        self.shared.log.say(
            event, f"{text}: {counts_text}", INFO if event == "shedding_ends" else WARNING, event, **found
        )

    def policed_of(self, deployed: Deployed) -> list[str]:
        """Of one plan; in words what has come to it."""
        found, before = deployed.loaded.policed(), deployed.policed
        news = []
        for name, shed in found.items():
            more = shed - before.get(name, 0)
            if more:
                self.shared.counters[f"policed_{name}"] += more
                kind, _, of = name.partition(".")
                news.append(f"{shed} {'tuples of source' if kind == 'arrivals' else 'results of operator'} {of}")
        deployed.policed = found
        return news

    def spoilt(self, engine_slots: Iterable[EngineSlot]) -> None:
        """A tuple without the field that a window asks for, or a function of a user's that raises, costs the windows it
        lies in; the counters say how many."""
        for engine_slot in engine_slots:
            for windowed in engine_slot.engine.windows.operators:
                state = windowed.state
                if state.why and state.newest is windowed:
                    why, state.why = state.why, ""
                    self.shared.note(f"windows_spoilt.{windowed.name}", f"windows of {windowed.name} are lost: {why}")
