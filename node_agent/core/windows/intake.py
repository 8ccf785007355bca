"""Takes the reports of tuples for a window operator of any kind, and gives the commands of its windows."""

from dataclasses import dataclass
from typing import Protocol

from node_agent.core.windows.open_windows import Command
from node_agent.core.windows.sequence import Sequence, Sink
from node_agent.core.windows.window_store import WindowStore
from node_agent.problems import UnusableValueError


@dataclass(frozen=True, slots=True)
class Limits:
    """lateness_ns: how much older than a lower number a tuple may be. wait_ns: how long a number may be missing.
    windows: how many may be open. ahead: reports per source that may wait for lower numbers. number: what an
    incarnation begins with."""

    lateness_ns: int
    wait_ns: int
    windows: int = 1024
    ahead: int = 4096
    number: int = 0


class WindowKind(Sink, Protocol):
    """Which windows there are and which tuples are in them, by what was settled of the sources."""

    def begin(self, number: int) -> None:
        """A source belongs to the windows from that number on."""


class Intake:
    """Reports of all sources. They carry the instant they came at; it never decreases."""

    def __init__(self, store: WindowStore, kind: WindowKind, sources: int, limits: Limits) -> None:
        if sources < 1:
            raise UnusableValueError("no_source", "a window without a source")
        self.store, self.kind = store, kind
        lateness_ns = limits.lateness_ns if store.by_time else None
        self.sources = tuple(
            Sequence(source, kind, lateness_ns, limits.wait_ns, limits.ahead, limits.number)
            for source in range(sources)
        )

    def begin(self, source: int, epoch: int, number: int) -> None:
        """All that the source admits in this incarnation from that number on belongs here, and nothing did before.
        Without this call each window that begins before the first report was heard of is skipped."""
        self.sources[source].begin(epoch, number)
        self.kind.begin(number)

    def present(self, source: int, at_ns: int, epoch: int, number: int, origin_ns: int, payload: object) -> None:
        """A tuple has come."""
        self.store.clean(at_ns)
        self.sources[source].present(at_ns, epoch, number, origin_ns, payload)

    def filtered(self, source: int, at_ns: int, epoch: int, number: int, origin_ns: int) -> None:
        """A tuple was admitted and did not pass a filter on its way."""
        self.store.clean(at_ns)
        self.sources[source].filtered(at_ns, epoch, number, origin_ns)

    def lost(
        self, source: int, at_ns: int, epoch: int, numbers: tuple[int, int], origins: tuple[int, int],
        exact: bool = False,
    ) -> None:  # fmt: skip
        """Numbers first..last were removed, with origins in least..greatest; exact: one of them has the greatest."""
        self.store.clean(at_ns)
        self.sources[source].lost(at_ns, epoch, *numbers, *origins, exact)

    def progress(self, source: int, at_ns: int, epoch: int, next_number: int, origin_ns: int) -> None:
        """Numbers below `next_number` were admitted; what comes later is not older than this."""
        self.store.clean(at_ns)
        self.sources[source].progress(at_ns, epoch, next_number, origin_ns)

    def expire(self, at_ns: int) -> None:
        """Time has passed; of use at `due_ns` and after."""
        self.store.clean(at_ns)
        for sequence in self.sources:
            sequence.expire(at_ns)

    def take(self) -> list[Command]:
        """What happened since the last time, in order."""
        live = self.store.live
        commands, live.commands = live.commands, []
        return commands

    @property
    def due_ns(self) -> int | None:
        """When `expire` has something to do, if nothing comes before."""
        due = [self.store.live.due_ns, *(each.due_ns for each in self.sources)]
        return min((each for each in due if each is not None), default=None)


__all__ = ["Intake", "Limits", "WindowKind"]
