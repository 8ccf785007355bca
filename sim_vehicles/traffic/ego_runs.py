"""The collision-warning query on recorded traffic: each vehicle in turn is the ego and hears the others.

No nodes and no queues: every tuple takes the same `latency_ns` from measurement to warning. The ego's own state comes
every 100 ms. The others send what ETSI's rules for CAM make them send (EN 302 637-2); a message is heard within
`range_m`. The recorded motion goes on after a warning: nobody brakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple

from node_agent.operators.registry import Registry
from sim_vehicles.errors import bad_input
from sim_vehicles.maps.extent import Extent, within
from sim_vehicles.operators.chain import Chain
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.traffic import truth
from sim_vehicles.traffic.neighbours import Neighbourhood
from sim_vehicles.traffic.transmissions import Heard, Transmissions
from sim_vehicles.traffic.truth import Conflict, Limits
from sim_vehicles.world.lane_network import LaneNetwork
from sim_vehicles.world.motion import Motion
from sim_vehicles.world.scene import Scenario, Scene
from sim_vehicles.world.sense import MS, Senses

CYCLE_NS = 100 * MS  # of the ego's own sensor
BEYOND_M = 150.0  # lanes this far from all places of a recording are of no use
# The query names the map of a scene that is not this one. Recorded drivers cut bends and wander.
LANES = {"O9": {"map": "", "max_offset_m": 1.8, "max_turn_rad": 0.3, "most_ways": 3}}


@dataclass(frozen=True)
class Options:
    """`latency_ns`: from measurement to warning, of every tuple. `range_m`: how far a message is heard."""

    seed: int = 1
    latency_ns: int = 100 * MS
    range_m: float = 150.0
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.latency_ns <= 10_000 * MS:
            raise bad_input("out_of_range", "--latency: must be from 0 to 10 s", subject="--latency")
        if not 0 < self.range_m <= 10_000:
            raise bad_input("out_of_range", "--range: must be in (0, 10000] metres", subject="--range")


class IssuedWarning(NamedTuple):
    """A warning as it comes out of the query, at recording time; level 0: nothing to do."""

    at_s: float
    object: str
    level: int


@dataclass
class EgoRun:
    """What one ego was told. `relevant`: of each V2V tuple in order, whether O3 handed it on; times of this machine."""

    ego: str
    seconds: float
    warnings: list[IssuedWarning]
    relevant: list[bool]
    spent_ns: dict[str, int]
    calls: dict[str, int]


@dataclass
class FileRun:
    """One recording with what its egos were told; `conflicts`: what really happened to these."""

    name: str
    motion: Motion
    conflicts: list[Conflict]
    runs: list[EgoRun]


@dataclass(frozen=True)
class Recorded:
    """A recording, its vehicles that are egos and what really happened to these. network: the lanes on which it is;
    None: the query knows none."""

    name: str
    motion: Motion
    egos: tuple[str, ...]
    conflicts: list[Conflict]
    network: LaneNetwork | None

    def run(self, options: Options, jobs: int = 1, progress: Callable[[str], None] | None = None) -> FileRun:
        """Every ego in turn, in `jobs` processes. `progress` is told each."""
        runs = []
        for run in _each(self, options, jobs):
            runs.append(run)
            if progress is not None:
                progress(run.ego)
        return FileRun(self.name, self.motion, self.conflicts, runs)


def recorded(
    path: Path,
    limits: Limits,
    egos: Sequence[str] = (),
    skip_bad_rows: bool = False,
    network: LaneNetwork | None = None,
) -> Recorded:
    """Reads a recording. Every vehicle of it, or those of `egos`, is an ego.

    BadInputError for a recording that cannot be read (`skip_bad_rows`: without the rows that cannot be), and for an ego
    that it does not have.
    """
    motion = read_motion(path, skip_bad_rows)
    for ego in egos:
        if ego not in motion.tracks:
            some = ", ".join(sorted(motion.tracks)[:5])
            raise bad_input(
                "unknown_vehicle",
                f"--ego {ego!r} is not in the recording",
                f"it has {some}, ...",
                subject=ego,
                file=path,
            )
    chosen = tuple(dict.fromkeys(egos)) or tuple(sorted(motion.tracks))
    near = None if network is None else within(network, _extent(motion).grown(BEYOND_M))
    if near is not None and not near.lanes:
        raise bad_input(
            "no_lanes",
            f"no lane of the map is within {BEYOND_M:g} m of the recording",
            "give the map of this recording, in its metres (sim-vehicles map --origin), or --no-map",
            file=path,
        )
    return Recorded(path.name, motion, chosen, truth.conflicts(motion, limits, chosen), near)


def run_file(
    path: Path,
    options: Options,
    egos: Sequence[str] = (),
    jobs: int = 1,
    progress: Callable[[str], None] | None = None,
    skip_bad_rows: bool = False,
    network: LaneNetwork | None = None,
) -> FileRun:
    """Reads a recording and runs it, as `recorded` and its `run`."""
    return recorded(path, options.limits, egos, skip_bad_rows, network).run(options, jobs, progress)


def run_ego(
    motion: Motion,
    ego: str,
    heard: Iterable[Heard],
    options: Options,
    registry: Registry,
    network: LaneNetwork | None = None,
) -> EgoRun:
    """Feeds the chain with the ego's own states and what it hears, in the order in which a node would work on them."""
    senses = Senses(Scenario(motion, Scene("traffic", ego, ())), options.seed)
    track = motion.tracks[ego]
    first_ns, last_ns = (round(state.t_s * 1e9) for state in (track.states[0], track.states[-1]))
    chain = Chain(registry=registry, parameters=LANES, clock_ns=perf_counter_ns, network=network)
    names = {number: name for name, number in senses.numbers.items()}
    run = EgoRun(ego, (last_ns - first_ns) / 1e9, [], [], chain.spent_ns, chain.calls)
    states = iter(range(first_ns, last_ns + 1, CYCLE_NS))
    next_ns = next(states, None)
    for one in heard:
        now_ns = one.at_ns + options.latency_ns
        while next_ns is not None and next_ns <= now_ns:  # the newest own state is there before a tuple that needs it
            for state in senses.sensor(next_ns, 1, CYCLE_NS):
                chain.admit("sensor", state, next_ns, next_ns)
            next_ns = next(states, None)
        passed = chain.calls["O4"]
        for _, warning in chain.admit("v2v", one.value, now_ns, one.at_ns):
            run.warnings.append(IssuedWarning(now_ns / 1e9, names[warning.object_id], warning.level))
        run.relevant.append(chain.calls["O4"] > passed)
    return run


def _extent(motion: Motion) -> Extent:
    return Extent.of((state.x_m, state.y_m) for track in motion.tracks.values() for state in track.states)


def _each(of: Recorded, options: Options, jobs: int) -> Iterator[EgoRun]:
    egos = of.egos
    if jobs <= 1 or len(egos) < 2:
        yield from _some(_Share(of.motion, egos, options, of.network))
        return
    parts = [egos[k::jobs] for k in range(jobs)]
    shares = [_Share(of.motion, part, options, of.network) for part in parts if part]
    with ProcessPoolExecutor(len(shares)) as pool:
        done = pool.map(_list_of_some, shares)
        runs = {run.ego: run for some in done for run in some}
    yield from (runs[ego] for ego in egos)


class _Share(NamedTuple):
    """What one process works on."""

    motion: Motion
    egos: Sequence[str]
    options: Options
    network: LaneNetwork | None


def _some(share: _Share) -> Iterator[EgoRun]:
    motion, options = share.motion, share.options
    registry, transmissions = Registry(), Transmissions(motion, Neighbourhood(motion), options.seed)
    for ego in share.egos:
        heard = transmissions.heard_by(ego, options.range_m)
        yield run_ego(motion, ego, heard, options, registry, share.network)


def _list_of_some(share: _Share) -> list[EgoRun]:
    return list(_some(share))
