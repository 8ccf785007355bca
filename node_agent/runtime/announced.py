"""What the runtime says of its own accord: tuples beyond what was declared, windows that a tuple has spoilt."""

from collections.abc import Iterable

from node_agent.runtime.deployed import Deployed, Lane
from node_agent.runtime.shared import Shared

POLICED_TOLD_NS = 60_000_000_000


class Announced:
    """Called once a second, and before a status is given."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self._policed_told_ns = 0  # not before this again

    def policed(self, at_ns: int, plans: Iterable[Deployed]) -> None:
        """Bring the counters of what was shed up to date; say it at most once a minute, and on few occasions."""
        news = [each for deployed in plans for each in self.policed_of(deployed)]
        if news and at_ns >= self._policed_told_ns:
            self._policed_told_ns = at_ns + POLICED_TOLD_NS
            self.shared.note("policing_told", f"beyond what was declared, and shed: {', '.join(news)}")

    def policed_of(self, deployed: Deployed) -> list[str]:
        """Of one plan; in words what has come to it."""
        found, told = deployed.loaded.policed(), deployed.policed
        news = []
        for name, shed in found.items():
            more = shed - told.get(name, 0)
            if more:
                self.shared.counters[f"policed_{name}"] += more
                kind, _, of = name.partition(".")
                news.append(f"{shed} {'tuples of source' if kind == 'arrivals' else 'results of operator'} {of}")
        deployed.policed = found
        return news

    def spoilt(self, lanes: Iterable[Lane]) -> None:
        """A tuple without the field that a window asks for, or a function of a user's that raises, costs the windows it
        lies in; the counters say how many."""
        for lane in lanes:
            for windowed in lane.engine.windows:
                state = windowed.state
                if state.why and state.newest is windowed:
                    why, state.why = state.why, ""
                    self.shared.note(f"windows_spoilt.{windowed.name}", f"windows of {windowed.name} are lost: {why}")
