"""A replay into live agents: lap by lap, with the ego braking when a live warning tells it to.

A warning counts from the instant at which it is received here, on the clock that the senders keep, as an instant of
the recording. When it makes the ego brake, what the ego's sensors and the others' radios say from then on is computed
anew beside the senders; until that is there they go on with what they had, and an instant that has begun is finished.
The ego reacts after the command, so what leaves in between is the same unless computing takes longer than its reaction;
`LiveLap.outdated` counts the bursts that differ.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import isinf
from threading import Event

from sim_vehicles.closed_loop.closed_loop import ClosedLoop
from sim_vehicles.closed_loop.crossing_messages import Offered, answered, until_known
from sim_vehicles.closed_loop.lap import Lap, worst
from sim_vehicles.encounter.verdict import Judge
from sim_vehicles.errors import FeedError
from sim_vehicles.inputs.maps import misfits
from sim_vehicles.replay.listening import Heard, Listen, Listening, Result, sink
from sim_vehicles.replay.live import START_IN_NS, Connect, Live, SourceCounts, source
from sim_vehicles.replay.preparation import Prepared, period_ns
from sim_vehicles.world.sense import Burst

MARGIN_S = 0.5  # beyond the largest deadline, after a lap's last burst
QUIET_S = 1.0  # no result for so long: the lap is over
MOST_S = 10.0  # results that come later than this after the last deadline are not waited for
SWITCH_S = 0.0005  # a thread that computes lets a sender go on within this; 5 ms otherwise
PAUSE_S = 1.5  # between laps, after the wait: operators forget vehicles within 1 s


@dataclass
class LiveLap:
    """One lap as it went. loop: its closed loop, None where nothing is judged. left: bursts that were not sent.
    outdated: bursts that left with the motion before braking; recomputed_s: how long computing new ones took.
    crossing: the tuples about the crossing vehicle that were offered."""

    number: int
    loop: ClosedLoop | None
    planned: int
    left: int = 0
    complete: bool = False
    settled: bool = True
    outdated: int = 0
    recomputed_s: float | None = None
    judged: Lap | None = None
    crossing: list[Offered] = field(default_factory=list)


class LiveReplay:
    """`run` plays all laps. `stop` (from a signal handler, say) ends it; what was done stands in laps and tallies."""

    def __init__(self, prepared: Prepared, connect: Connect | None = None, listen: Listen | None = None) -> None:
        connect = connect or partial(source, tls=prepared.tls)
        listen = listen or partial(sink, tls=prepared.tls)
        options = prepared.options
        self.prepared = prepared
        self.stop = Event()
        self.laps: list[LiveLap] = []
        self.on_burst: Callable[[Burst], None] = lambda burst: None
        self.on_lap: Callable[[LiveLap], None] = lambda lap: None  # before it and after it
        self.failure: FeedError | None = None
        self.stale = 0  # results of a lap that came after it
        self.played_s = 0.0  # real time from each lap's first burst to its last
        self._live = Live(
            prepared.feeds, prepared.addresses, connect, options.rate, self._sent, self.stop, self._answered
        )
        self._listening = Listening(prepared.outputs, prepared.addresses, listen)
        self._scene_judge = None if prepared.not_judged else Judge(prepared.scenario)
        self._floors: dict[int, tuple[int, int]] = {}
        self._shown: Lap | None = None

    @property
    def tallies(self) -> dict[str, SourceCounts]:
        """The counts of sent tuples, by source."""
        return self._live.tallies

    @property
    def heard(self) -> dict[str, Heard]:
        """The counts of received results, by output."""
        return self._listening.heard

    @property
    def rate_reached(self) -> float | None:
        """Times real time; at rate max, what it came to. None: nothing was sent."""
        rate, bursts = self.prepared.options.rate, self.prepared.bursts
        if not isinf(rate) or not self._bursts_sent():
            return None if isinf(rate) else rate
        recorded_s = (bursts[-1].at_ns - bursts[0].at_ns + period_ns(self.prepared.feeds)) / 1e9
        return recorded_s * self._bursts_sent() / len(bursts) / self.played_s

    @property
    def counted(self) -> list[Lap]:
        """The laps that were played to an end; where there is none, all."""
        judged = [(lap, lap.judged) for lap in self.laps if lap.judged is not None]
        whole = [one for lap, one in judged if lap.complete or one.verdict.valid]
        return whole or [one for _, one in judged]

    def run(self) -> None:
        """Raises FeedError: nothing was sent (while connecting), or a source broke, which ended the replay."""
        self._listening.hear = self._hear
        self._listening.on_failure = self.stop.set
        laps = self.prepared.options.laps
        try:
            with self._listening, self._live, undisturbed():
                while not self.stop.is_set() and (laps == 0 or len(self.laps) < laps):
                    if self.laps and self.stop.wait(PAUSE_S):
                        break
                    self._lap()
        except FeedError as gone:
            self.failure = gone
            raise
        finally:
            self._judge()
        if self._listening.failure is not None:
            raise self._listening.failure

    def _sent(self, burst: Burst) -> None:
        self.on_burst(burst)

    def _answered(self, bursts: Sequence[Burst], answers: Sequence[object]) -> None:
        """Told by the thread of one node; a list takes what several add."""
        lap, first = self.laps[-1], 0
        if lap.loop is None:
            return
        for burst in bursts:
            number = self.prepared.plan.graph.sources[burst.source].id
            mine = answers[first : first + len(burst.values)]
            lap.crossing += answered(burst, number, mine, lap.loop.crossing_number)
            first += len(burst.values)

    def _lap(self) -> None:
        prepared = self.prepared
        loop = None
        if self._scene_judge is not None:
            loop = ClosedLoop(prepared.scenario, prepared.inputs, prepared.options.brake, self._scene_judge)
        bursts = prepared.bursts if loop is None else loop.bursts
        ids = {name: source.id for name, source in prepared.plan.graph.sources.items()} if loop else {}
        self._floors = {ids[name]: tally.last for name, tally in self.tallies.items() if name in ids}
        lap = LiveLap(len(self.laps) + 1, loop, len(bursts))
        self.laps.append(lap)
        self.on_lap(lap)
        began_s, sent = time.monotonic(), self._bursts_sent()
        try:
            self._live.run(bursts)
        finally:
            self.played_s += time.monotonic() - began_s - START_IN_NS / 1e9
            lap.left = self._live.left
            lap.planned = self._bursts_sent() - sent + lap.left
        if lap.left == 0:
            lap.settled = self._settle() if loop else True
            lap.complete = not (loop and self.stop.is_set())
        self._judge()
        self.on_lap(lap)

    def _settle(self) -> bool:
        late_s = max((output.deadline_ns for output in self.prepared.outputs), default=0) / 1e9 + MARGIN_S
        return self._listening.settle(late_s, QUIET_S, late_s + MOST_S, self.stop)

    def _bursts_sent(self) -> int:
        return sum(tally.bursts for tally in self.tallies.values())

    def _hear(self, at_ns: int, result: Result) -> None:
        lap = self.laps[-1] if self.laps else None
        source_id, epoch, seq, _ = result.lineage
        if (
            lap is None
            or lap.loop is None
            or lap.judged is not None
            or (epoch, seq) <= self._floors.get(source_id, (0, 0))
        ):
            self.stale += 1
            return
        began_s, recording_ns = time.monotonic(), self._live.recording_ns(at_ns)
        fresh = lap.loop.warned(recording_ns, result.value, result.latency_ns, result.lineage)
        if fresh is not None:
            lap.outdated += self._live.replace(fresh, recording_ns)
            lap.recomputed_s = time.monotonic() - began_s

    def _judge(self) -> None:
        """The verdict of the lap that was played last, once."""
        lap = self.laps[-1] if self.laps else None
        if lap is None or lap.loop is None or lap.judged is not None:
            return
        self._listening.drain(MOST_S)
        why = self._why_not_valid(lap)
        k, n = self.prepared.options.phase or (0, 1)
        phase_ns = self.prepared.phase_ns
        verdict = lap.loop.verdict(k, n, phase_ns, why is None, why)
        if lap.loop.crossing_number is not None:
            knew = verdict.found.knew
            messages = until_known(lap.crossing, None if knew is None else knew.at_s)
            verdict = replace(verdict, crossing_messages=messages)
        lap.judged = Lap(k, n, phase_ns, self.prepared.inputs.hash, verdict, lap.loop)
        self._keep_worst(lap.judged)

    def _keep_worst(self, judged: Lap) -> None:
        """Of laps that replay.json will not show only what it tells of them: a replay may play for days."""
        before, self._shown = self._shown, worst(self.counted)
        for one in (before, judged):
            if one is not None and one is not self._shown:
                one.loop.forget()

    def _why_not_valid(self, lap: LiveLap) -> str | None:
        rate = self.prepared.options.rate
        if rate != 1:
            return f"rate {rate_text(rate)}: gaps are shorter or longer than in reality, an operator's cost is not"
        if strange := misfits(self.prepared.plan, self.prepared.scenario.scene):
            return "; ".join(strange)
        gone = [f"output {name}: {heard.failure}" for name, heard in self.heard.items() if heard.failure]
        if gone:
            return gone[0]
        if lap.complete or self._decided(lap):
            return None
        return str(self.failure) if self.failure else "interrupted"

    def _decided(self, lap: LiveLap) -> bool:
        """Whether nothing that would still have been sent could change the outcome: the ego brakes, or it has hit."""
        assert lap.loop is not None
        found = lap.loop.verdict(0, 1, 0, True, None).found
        now_s = self._live.recording_ns(time.monotonic_ns()) / 1e9
        return found.brake is not None or (found.impact_s is not None and found.impact_s <= now_s)


@contextmanager
def undisturbed() -> Iterator[None]:
    """While bursts leave: the interpreter's lock changes hands soon, and no collection walks over all of the input."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before_s)


def rate_text(rate: float) -> str:
    """As the user writes it."""
    return "max" if isinf(rate) else f"{rate:g}"
