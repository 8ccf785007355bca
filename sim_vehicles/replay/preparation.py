"""Preparation of a replay: the user's options, and everything that is decided before the first tuple leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from node_agent.virtual.plan_file import MEND, read_json, read_plan
from protos.plan_document import Plan
from sim_vehicles.closed_loop.lap import phase_ns
from sim_vehicles.encounter.brake import AUTO, Brake
from sim_vehicles.errors import bad_input
from sim_vehicles.inputs.city_around import drawn_city
from sim_vehicles.inputs.feed import Feed, feeds
from sim_vehicles.inputs.load import utilisation
from sim_vehicles.inputs.stimuli import Around, Stimuli, StimulusOptions
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.replay.listening import WARNING, Output, outputs
from sim_vehicles.v2v.channel import IDEAL, Channel
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sense import Burst

DEFAULT_NS = 10_000_000_000
LEAST_LAP_NS = 1_000_000_000  # by less, ITS time runs back into what operators remember
MAX_RATE = 1000.0
MAX_PHASES = 1000
MAX_LAPS = 10_000


@dataclass(frozen=True)
class Options:
    """What the user asked for. Times in ns of the recording.

    addresses: where live agents are, or virtual: the plan to run in virtual time; exactly one of the two. start_ns
    None: where the scene says, else the recording's start. until_ns, or duration_ns from the start; neither: 10 s.
    rate: times real time, infinity: no gaps. phase (k, n): bursts k/n of a period later. phases: all of so many,
    virtual only. laps: how often the recording is played; 0: without end, live only. around: a recording whose
    stations are heard as well.
    """

    scenario: str
    addresses: Path | None = None
    virtual: Path | None = None
    plan: Path | None = None
    duration_ns: int | None = None
    until_ns: int | None = None
    start_ns: int | None = None
    rate: float = 1.0
    laps: int = 1
    phase: tuple[int, int] | None = None
    phases: int = 1
    v2v: int | None = None
    age_ns: int = 100_000_000
    seed: int = 1
    ego: str | None = None
    messages: str = "burst"
    channel: Channel = IDEAL
    around: str | None = None
    brake: Brake = AUTO
    operators: tuple[Path, ...] = ()
    skip_bad_rows: bool = False


@dataclass(frozen=True)
class Prepared:
    """Everything that is decided before the first tuple leaves. around: the stations that are heard beside the
    scenario's. not_judged: why there will be no verdict, else None. tls: the identity to talk to live agents with,
    None: without TLS."""

    options: Options
    scenario: Scenario
    plan: Plan
    feeds: list[Feed]
    outputs: list[Output]
    addresses: dict[str, str]
    inputs: Stimuli
    bursts: list[Burst]
    not_judged: str | None
    sizes: dict[str, tuple[int, int]] = field(repr=False)
    around: Around | None = None
    tls: Path | None = None

    @property
    def phase_ns(self) -> int:
        """How much later every burst is sent than at phase 0, ns."""
        return self.inputs.options.phase_ns

    @property
    def cut_short(self) -> list[str]:
        """A sentence where --until or --duration asks for more than the recording has: nothing is made up beyond it."""
        options, motion = self.options, self.scenario.motion
        asked = "--until" if options.until_ns is not None else "--duration" if options.duration_ns is not None else None
        until_ns = self.inputs.options.until_ns
        if asked is None or until_ns <= round(motion.end_s * 1e9):
            return []
        return [
            f"the recording ends at {motion.end_s:g} s, before the {until_ns / 1e9:g} s that {asked} asks for: "
            "the replay ends there"
        ]

    def utilisation(self, rate: float) -> dict[str, float]:
        """Share of each node's time that the bursts ask for at a finite rate."""
        return utilisation(self.plan, self.sizes, rate)


def prepare(options: Options) -> Prepared:
    """Reads and computes all input; BadInputError says what cannot be used. The same options give the same bursts."""
    _check(options)
    scenario = load_scenario(options.scenario, options.ego, options.skip_bad_rows)
    path = _plan_path(options)
    named = "" if options.virtual or options.plan else "; name it with --plan"
    plan = read_plan(path, f"a plan made by `coordinator plan`{named}")
    found = feeds(plan, path, options.v2v)
    if not found:
        raise bad_input("no_source", "the plan has no source, so there is nothing to send", file=path)
    told = outputs(plan)
    why = None if told else f"the plan has no output of type {WARNING}, so nothing makes the ego brake"
    addresses, tls = ({}, None) if options.addresses is None else _addresses(options.addresses, found, told)
    chosen = _input_options(options, scenario, found)
    if options.virtual is None and options.laps != 1 and chosen.until_ns - chosen.start_ns < LEAST_LAP_NS:
        raise bad_input(
            "laps_too_short",
            "--loop: live laps must be at least 1 s long; operators remember the lap before for so long",
            subject="--loop",
        )
    around = None
    if options.around is not None:
        around = drawn_city(options.around, options.seed, options.channel, chosen.start_ns, chosen.until_ns)
    inputs = Stimuli(found, scenario, chosen, around)
    bursts = inputs.bursts()
    if not bursts:
        raise bad_input(
            "no_burst",
            "--start, --until: no burst lies between them",
            "make the stretch longer than a period of the plan's sources",
            subject="--start",
        )
    sizes = _sizes(found, bursts, inputs.options)
    try:
        utilisation(plan, sizes, 1.0)
    except KeyError as bad:
        raise bad_input("not_complete", f"is no complete plan: {bad} has no place", MEND, file=path) from None
    return Prepared(options, scenario, plan, found, told, addresses, inputs, bursts, why, sizes, around, tls)


def period_ns(found: list[Feed]) -> int:
    """The longest period of the sources."""
    return max(feed.period_ns for feed in found)


def parse_rate(text: str) -> float:
    """Of `--rate`: a number of times real time, or max: infinity. BadInputError."""
    if text.strip() == "max":
        return inf
    try:
        return float(text)
    except ValueError:
        raise bad_input(
            "no_number", f"--rate: {text!r} is no number of times real time", "write 1, 4 or max", subject="--rate"
        ) from None


def parse_phase(text: str) -> tuple[int, int]:
    """Of `--phase`: `3/20` in (3, 20). BadInputError where it has no such form."""
    k, slash, n = (part.strip() for part in text.partition("/"))
    if not (slash and k.isdecimal() and n.isdecimal() and len(k + n) < 12):
        raise bad_input(
            "wrong_form", f"--phase: {text!r}: write K/N, as in 3/20: bursts 3/20 of a period later", subject="--phase"
        )
    return int(k), int(n)


def _check(options: Options) -> None:
    if (options.addresses is None) == (options.virtual is None):
        what = "only one of them" if options.addresses else "one of them"
        raise bad_input(
            "options_do_not_fit",
            f"--to, --virtual: give {what}: --to addresses.json of running agents, or --virtual plan.json",
            subject="--to",
        )
    if not (0 < options.rate <= MAX_RATE or options.rate == inf):  # NaN too
        raise bad_input(
            "out_of_range",
            f"--rate: {options.rate:g} must be above 0 and at most {MAX_RATE:g}, or max",
            subject="--rate",
        )
    if options.virtual is not None and options.rate != 1:
        raise bad_input("options_do_not_fit", "--rate: nothing waits in virtual time", "leave it out", subject="--rate")
    if options.virtual is not None and options.plan is not None:
        raise bad_input(
            "options_do_not_fit", "--plan: --virtual names the plan already", "leave it out", subject="--plan"
        )
    if options.virtual is None and options.operators:
        raise bad_input(
            "options_do_not_fit",
            "--operators: live agents have theirs",
            "start them with --operators, or use --virtual",
            subject="--operators",
        )
    _check_times(options)
    _check_counts(options)


def _check_times(options: Options) -> None:
    if options.duration_ns is not None and options.until_ns is not None:
        raise bad_input("options_do_not_fit", "--duration, --until: give only one of them", subject="--duration")
    if options.duration_ns is not None and options.duration_ns <= 0:
        raise bad_input("out_of_range", "--duration: must be above 0", subject="--duration")
    if options.phase is not None:
        k, n = options.phase
        if options.phases != 1:
            raise bad_input("options_do_not_fit", "--phase, --phases: give only one of them", subject="--phase")
        if not (1 <= n <= MAX_PHASES and 0 <= k < n):
            raise bad_input(
                "out_of_range",
                f"--phase: {k}/{n}: phases of N are 0/N to (N-1)/N, with N at most {MAX_PHASES}",
                subject="--phase",
            )


def _check_counts(options: Options) -> None:
    if not 1 <= options.phases <= MAX_PHASES:
        raise bad_input(
            "out_of_range", f"--phases: {options.phases} must be from 1 to {MAX_PHASES}", subject="--phases"
        )
    if options.phases != 1 and options.virtual is None:
        raise bad_input(
            "options_do_not_fit",
            "--phases: needs --virtual",
            "a live replay has one burst phase: --phase K/N",
            subject="--phases",
        )
    if options.around is not None and options.messages != "etsi":
        raise bad_input(
            "options_do_not_fit", "--around: its stations send by the rules", "add --messages etsi", subject="--around"
        )
    least = 1 if options.virtual is not None else 0
    if not least <= options.laps <= MAX_LAPS:
        raise bad_input(
            "out_of_range",
            f"--loop: {options.laps} must be from {least} to {MAX_LAPS} laps; 0, until Ctrl-C, is live only",
            subject="--loop",
        )
    if options.v2v is not None and not 1 <= options.v2v <= 4096:
        raise bad_input(
            "out_of_range",
            f"--v2v: {options.v2v} must be from 1 to 4096, the most that one batch holds",
            subject="--v2v",
        )


def _plan_path(options: Options) -> Path:
    if options.virtual is not None:
        return options.virtual
    assert options.addresses is not None
    if not options.addresses.exists():  # said first: the plan is looked for beside it
        raise bad_input(
            "no_file", "there is no such file", "it should be what `coordinator up` writes", file=options.addresses
        )
    return options.plan or options.addresses.with_name("plan.json")


def _input_options(options: Options, scenario: Scenario, found: list[Feed]) -> StimulusOptions:
    start_ns = _start_ns(scenario, options.start_ns)
    until_ns = options.until_ns
    if until_ns is None:
        until_ns = start_ns + (DEFAULT_NS if options.duration_ns is None else options.duration_ns)
    if until_ns <= start_ns:
        raise bad_input(
            "out_of_range",
            f"--until: {until_ns / 1e9:g} s is not after the start, {start_ns / 1e9:g} s",
            subject="--until",
        )
    k, n = options.phase or (0, 1)
    return StimulusOptions(
        start_ns, until_ns, phase_ns(found, k, n), options.seed, options.v2v, options.age_ns, options.messages,
        options.channel,
    )  # fmt: skip


def _start_ns(scenario: Scenario, asked_ns: int | None) -> int:
    motion, scene = scenario.motion, scenario.scene
    if asked_ns is None:
        return round((motion.start_s if scene.start_s is None else scene.start_s) * 1e9)
    if not motion.start_s <= asked_ns / 1e9 <= motion.end_s:
        raise bad_input(
            "out_of_range",
            f"--start: {asked_ns / 1e9:g} s is outside the recording ({motion.start_s:g} to {motion.end_s:g} s)",
            subject="--start",
        )
    return asked_ns


def _sizes(found: list[Feed], bursts: list[Burst], options: StimulusOptions) -> dict[str, tuple[int, int]]:
    """Tuples and the ns in which they come, per source: the plan's bursts, or what the ETSI rules make of them."""
    sizes = {feed.name: (feed.n, feed.period_ns) for feed in found}
    if options.messages == "burst":
        return sizes
    span_ns = max(burst.at_ns for burst in bursts) + period_ns(found) - min(burst.at_ns for burst in bursts)
    sent = {feed.name: sum(len(burst.values) for burst in bursts if burst.source == feed.name) for feed in found}
    return {name: (sent[name], span_ns) for name in sizes}


def _addresses(path: Path, found: list[Feed], told: list[Output]) -> tuple[dict[str, str], Path | None]:
    """The data addresses of the nodes that are fed or listened to, and the identity to talk to them with."""
    values = read_json(path, "the addresses.json that `coordinator up` writes")
    nodes, tls = values.get("nodes"), values.get("tls")
    if not isinstance(nodes, dict):
        raise bad_input(
            "missing_key",
            '"nodes" is missing',
            "it should be the addresses.json that `coordinator up` writes",
            subject="nodes",
            file=path,
        )
    if tls is not None and (not isinstance(tls, str) or not tls):
        raise bad_input(
            "wrong_shape",
            '"tls" is no folder',
            "it should be the addresses.json that `coordinator up` writes",
            subject="tls",
            file=path,
        )
    wanted = [(feed.node, f"where source {feed.name} enters") for feed in found]
    wanted += [(output.node, f"where output {output.name} leaves") for output in told]
    result = {}
    for name, where in wanted:
        node = nodes.get(name)
        if not isinstance(node, dict) or not isinstance(node.get("data"), str):
            raise bad_input("no_address", f"node {name}, {where}, has no data address here", subject=name, file=path)
        result[name] = node["data"]
    return result, path.parent / tls if tls else None
