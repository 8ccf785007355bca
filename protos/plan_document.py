"""plan.json as typed objects: the sole definition of its keys.

Self-contained: nothing else is needed to run a plan. Its hash is the SHA-256 of the canonical JSON without the key
`hash` (sorted keys, no spaces, UTF-8, no NaN). Neither wall time nor solve time stands in it, so the same input gives
the same hash. `deadline_ns` is end to end, from a tuple's origin to its result; `sub_deadline_ns` is a task unit's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from protos import digests, plan_pb2
from protos.json_shape import Json, ShapeError, coded, empty, key, omitted, read, write

VERSION = 1
SubDeadlines = Literal["model", "deadline", "proportional", "sound", "kept"]  # where they come from
ADD = ".add"  # behind the name of a window operator: the part that collects tuples; no user's name has a dot


PlanFault = Literal["not_json", "not_a_plan", "other_version", "not_finite", "changed"]


class PlanFileError(ValueError):
    """Not a plan, of another version, or changed since it was made. path: the keys that lead to what is wrong."""

    def __init__(self, code: PlanFault, text: str, path: str = "") -> None:
        super().__init__(text)
        self.code, self.text, self.path = code, text, path


# -- what was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """SHA-256 of the files that the plan was made of; empty: there was none."""

    query: str
    cluster: str
    operators: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPart:
    """What belongs to one of the queries that are planned together: names in the plan, in its own file's order. called:
    what the file calls an operator, by its name there, where the two differ."""

    sources: tuple[str, ...]
    operators: tuple[str, ...]
    outputs: tuple[str, ...]
    sha256: str
    called: Mapping[str, str] = field(default_factory=dict)


# -- how the planner came to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """How placement and sub-deadlines were found. outcome to cuts: of model `sound`. over_caps: what is used on average
    of nodes beyond their caps. served: the share of each output that gives way which can at most be served."""

    name: Literal["highs", "gscip"]
    seed: int
    contracted: str
    outcome: str = omitted("")
    why: tuple[str, ...] | None = omitted()
    tighten: str | None = omitted("")
    placements: int | None = omitted()
    analyses: int | None = omitted()
    cuts: int | None = omitted()
    over_caps: Mapping[str, float] | None = omitted()
    served: Mapping[str, float] | None = omitted()
    gap: float = 0.0
    sub_deadlines: SubDeadlines = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """nlr: the greatest normalised load ratio, and what it is at least (bound); traffic: tuples per second on links,
    and what they are at least where that is not proven."""

    nlr: float
    bound: float
    traffic: float
    traffic_bound: float | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task unit: operators that run as one instance on a node."""

    id: int
    operators: tuple[str, ...]
    sub_deadline_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostDistribution:
    """Measured calls of an operator on one node. calls: how many in each bucket, ascending, by its upper end in ns of
    that node's time, at its speed."""

    node: str
    speed: float
    calls: tuple[tuple[int, int], ...]

    @property
    def samples(self) -> int:
        """Calls in all."""
        return sum(calls for _, calls in self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOrigin:
    """Where a cost comes from that is not simply as declared. declared_ns: what the query says, 0: nothing; of: the
    figure of `file` that was taken, times `margin`; samples: the least of the `nodes`; why: what is wrong with it;
    distributions: where an output asks for a bound with a confidence, one for each node."""

    kind: str
    declared_ns: int = 0
    file: str = ""
    of: str = ""
    margin: str = ""
    samples: int = 0
    nodes: tuple[str, ...] = ()
    measured: str = ""
    why: str = ""
    distributions: tuple[CostDistribution, ...] = omitted(())


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperChoice:
    """What model `paper` would have chosen. elsewhere: operators that it places on other nodes, and where."""

    elsewhere: Mapping[str, str]
    nlr: float | None
    traffic: float
    nlr_here: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundAlternative:
    """What another node would bring, under model `sound`; nlr None: the `paper` model has no solution there."""

    traffic: float
    guaranteed: bool
    nlr: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperAlternative:
    """What another node would bring, under model `paper`."""

    nlr: float
    traffic: float


Alternative = SoundAlternative | PaperAlternative


@dataclass(frozen=True, slots=True, kw_only=True)
class IncumbentPart:
    """Operators of plan `of` that stay as they were. spared: outputs that may become worse."""

    of: str
    operators: tuple[str, ...]
    spared: tuple[str, ...] = omitted(())


# -- the graph


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstArrival:
    """So many at one instant, once a period."""

    kind: Literal["burst"] = "burst"
    burst: int
    period_ns: int
    tolerance_ns: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JcpArrival:
    """One a period, by so much too early or too late, at least a gap apart. burst: the most at the least gap."""

    kind: Literal["jcp"] = "jcp"
    burst: int
    period_ns: int
    min_gap_ns: int
    early_ns: int
    late_ns: int
    tolerance_ns: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateArrival:
    """burst + rate t in any t seconds."""

    kind: Literal["rate"] = "rate"
    rate_per_s: float
    burst: int
    tolerance_ns: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceArrival:
    """As in a recording. counts, spans_ns: so many tuples span at least so long."""

    kind: Literal["trace"] = "trace"
    file: str
    sha256: str
    burst: int
    tuples: int
    span_ns: int
    counts: tuple[int, ...]
    spans_ns: tuple[int, ...]
    tolerance_ns: int = omitted(0)


Arrival = BurstArrival | JcpArrival | RateArrival | TraceArrival


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Of a source: at most `tuples` in any `span_ns`. value: the expression's text, tree what agents evaluate; both
    empty: the earliest go on."""

    tuples: int
    span_ns: int
    value: str = ""
    tree: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """How the node of a source makes its tuples itself. run empty: a timer; every_ns 0: an iterator, at its own pace;
    offset_ns: of the ticks, below every_ns; cost_ns: CPU time of a call, at speed 1, `guessed` where nobody says it."""

    run: str = ""
    parameters: Mapping[str, Json] = key("with", default_factory=dict)
    every_ns: int = 0
    offset_ns: int = 0
    cost_ns: int = 0
    guessed: bool = omitted(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """A place outside that a node reads a source's messages from, or puts an output's results to; as in plan.proto."""

    kind: str
    url: str
    topic: str = omitted("")
    encoding: str = omitted("")
    schema: str = omitted("")
    stamp: str = omitted("")
    qos: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """forbid_streams: pairs of nodes between which its stream may not go. pull: its node makes its tuples; None:
    clients feed it. max_bytes: of a payload; 0: not declared. connector: a client that the node runs."""

    id: int
    at: str
    type: str
    stream: int
    max_age_ns: int
    arrival: Arrival
    forbid_streams: tuple[tuple[str, str], ...]
    limit: Limit | None = omitted()
    on_full: str = omitted("refuse")
    pull: Pull | None = omitted()
    max_bytes: int = omitted(0)
    connector: Connector | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selectivity:
    """Results per input: in the mean, and at most so many of so many inputs in a row (inputs, results)."""

    mean: float
    at_most: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What an operator collects. kind: time, count or sized; length and hop in ns, or in tuples by count; first:
    deadlines count from the oldest tuple; wait_ns 0: as the cluster's links ask; shed: a policy, or none; most: tuples
    that may wait; on: of a join, the field of each input; keep: results that are too late are given."""

    kind: str
    length: int
    hop: int
    lateness_ns: int = 0
    first: bool = False
    wait_ns: int = 0
    by: str = ""
    on: tuple[str, ...] = ()
    size: str = ""
    shed: str = "window-aware"
    most: int = 3000
    keep: bool = False

    @property
    def policy(self) -> str | None:
        """The shedder; None: there is none."""
        return None if self.shed == "none" else self.shed


@dataclass(frozen=True, slots=True, kw_only=True)
class OnLate:
    """Of an operator: tuples that can be in time for no output are dropped, or `run` runs in its place."""

    run: str = ""
    cost_ns: int = 0
    parameters: Mapping[str, Json] = key("with", default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The most bytes that wait before an operator, and what goes beyond them."""

    most_bytes: int
    on_full: str = "drop-tail"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRule:
    """Of a side input. max_age_ns: a value that may be older counts as none, 0: any age; shed: a tuple without one is
    shed, else the operator gets none."""

    max_age_ns: int = 0
    shed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """How an operator's inputs are fused. within_ns: how far apart the origins of a set may be; None: every input has
    come since the last set. timeout_ns: so long after its first tuple came a set runs without the others; 0: never.
    keep: tuples of each input that may wait. each: no sets, but every tuple as it comes with all within_ns from it."""

    within_ns: int | None
    timeout_ns: int = 0
    keep: int = 1
    each: bool = omitted(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """kind: map, join, fusion or union: what triggers it. inputs trigger it; side inputs do not. nodes: those it may be
    on; None: all. hang_ns: an instance that runs longer ends its runtime. max_bytes: of a result as declared, 0:
    not."""

    id: int
    run: str
    inputs: tuple[str, ...] = key("in")
    ports: tuple[str, ...] | None
    side: Mapping[str, str]
    cost_ns: int
    selectivity: Selectivity | None
    nodes: tuple[str, ...] | None
    forbid_nodes: tuple[str, ...]
    memory_bytes: int
    parameters: Mapping[str, Json] = key("with")
    kind: str
    join: bool
    stream: int
    hang_ns: int
    state: str
    forbid_streams: tuple[tuple[str, str], ...]
    called: tuple[str, ...] | None = omitted()
    window: Window | None = omitted()
    on_late: OnLate | None = omitted()
    queue: Queue | None = omitted()
    closes: str = omitted("")
    sync: Sync | None = omitted()
    side_rules: Mapping[str, SideRule] = empty()
    max_bytes: int = omitted(0)

    @property
    def declared(self) -> Selectivity:
        """Its selectivity; where it says none, one result per input in the mean, and nothing bounds them."""
        return self.selectivity or Selectivity(mean=1, at_most=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """What an output asks for beyond its deadline."""

    wait_ns: int | None = omitted()
    throughput_per_s: float | None = omitted()
    latency_ns: int | None = omitted()
    queue_bytes: int | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedConfidence:
    """share: of an output's results, to be within its bound. independent: instances' costs have nothing to do with each
    other, says the query."""

    share: float
    independent: bool = omitted(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """origin: the stream that it delivers, by the name of what produces it. age_ns: how old the oldest datum behind a
    result may be when it is delivered; reaction_ns: from a change at a source to the first result that reflects it;
    None: not asked. age_without, reaction_without: sources that they do not count. connector: its node puts
    results there. confidence: None: the bound is to hold for every result."""

    id: int
    origin: str = key("from")
    at: str
    deadline_ns: int
    qos: Qos | None = omitted()
    age_ns: int | None = omitted()
    age_without: tuple[str, ...] = omitted(())
    reaction_ns: int | None = omitted()
    reaction_without: tuple[str, ...] = omitted(())
    connector: Connector | None = omitted()
    confidence: AskedConfidence | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What a source or an operator produces. type: of its codec. max_bytes: of a payload; 0: as fits one frame."""

    id: int
    type: str
    max_bytes: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The windows of an operator, by the name that users know. add: the operator that collects; source: what they are
    admitted as; useful_ns: how long a result is of use after its end; arrival: None by count."""

    add: str
    source: int
    at: str
    kind: str
    length: int
    hop: int
    lateness_ns: int
    first: bool
    by: str
    on: tuple[str, ...]
    size: str
    most: int
    useful_ns: int
    wait_ns: int
    sources: tuple[str, ...]
    shed: str | None
    arrival: Arrival | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """All of it by name."""

    sources: Mapping[str, Source]
    operators: Mapping[str, Operator]
    outputs: Mapping[str, Output]
    streams: Mapping[str, Stream]
    windows: Mapping[str, Windows] = empty()


# -- the cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCharges:
    """What the runtime costs on a node, ns of its CPU time at any speed. decision_ns: choosing and ending one
    task instance; drain_ns: one tuple, or absence punctuation, read from a socket, until it is admitted; side_ns: one
    update of a side input of one operator."""

    decision_ns: int
    drain_ns: int
    side_ns: int

    def __post_init__(self) -> None:
        if min(self.decision_ns, self.drain_ns, self.side_ns) < 0:
            raise ValueError("charges cannot be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """cores: of its host, of which this is number `core`; cap: the most of its time that may be used; cpu: where it is
    pinned, -1: nowhere. memory_bytes 0: not limited."""

    index: int
    address: str
    speed: float
    host: str
    core: int
    cores: int
    memory_bytes: int
    host_memory_bytes: int
    cap: float
    policy: str
    policy_parameters: Mapping[str, int] = empty()
    policy_by_default: bool = omitted(False)
    emulate_cost_ns: int
    cpu: int
    charges: NodeCharges | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Both ways."""

    between: tuple[str, str]
    latency_ns: int
    bandwidth_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An operator of operators.json. code: SHA-256 of its code; empty: not told."""

    version: str
    code: str
    kind: str
    inputs: Mapping[str, str]
    side: Mapping[str, str]
    output: str
    parameters: Mapping[str, Json] = key("with")
    variadic: bool
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """What agents have installed. complete: nothing else. fields: of codecs, where they are known."""

    complete: bool
    codecs: tuple[str, ...]
    fields: Mapping[str, Json] = empty()
    operators: Mapping[str, Installed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The nodes, the links between them, the security mode and the operators that are installed."""

    nodes: Mapping[str, Node]
    links: tuple[Link, ...]
    security: str
    installed: Catalog


# -- what is promised


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """Jobs of a unit that run before one of another."""

    what: str
    jobs: int
    ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A part of a bound. unit to done_before_ns: of a task unit, what runs before it."""

    what: str
    ns: int
    kind: str
    node: str
    work_ns: int
    waiting_ns: int
    blocking_ns: int
    unit: int | None = omitted()
    ahead: tuple[Ahead, ...] | None = omitted()
    done_before_ns: int | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeCheck:
    """bound_ns None: not analysed."""

    limit_ns: int
    bound_ns: int | None
    guaranteed: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCheck:
    """bound_bytes None: not analysed."""

    limit_bytes: int
    bound_bytes: int | None
    guaranteed: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """Of what an output asks beyond its deadline."""

    wait: TimeCheck | None = omitted()
    throughput: TimeCheck | None = omitted()
    queue: SizeCheck | None = omitted()

    @property
    def asked(self) -> Mapping[str, TimeCheck | SizeCheck]:
        """Those that there are, by name."""
        every = {"wait": self.wait, "throughput": self.throughput, "queue": self.queue}
        return {name: each for name, each in every.items() if each is not None}

    @property
    def hold(self) -> bool:
        """All that is asked is guaranteed."""
        return all(each.guaranteed for each in self.asked.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPath:
    """The longest way of a source's data to an output. of: what it bounds there. bound_ns None: nothing bounds it, for
    `why`. steps: hop by hop, they sum up to the bound."""

    of: Literal["age", "reaction"]
    source: str
    bound_ns: int | None
    steps: tuple[Step, ...] = omitted(())
    why: str = omitted("")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedCost:
    """Of an operator, what a bound with a confidence counts on. cost_ns: of an instance, on its node; exceeded: the
    greatest probability that one takes longer, as far as `samples` calls say; runs: that can influence one result."""

    cost_ns: int
    exceeded: float
    runs: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentBound:
    """That at least `share` of an output's results are within bound_ns, given that costs keep the distribution that was
    measured; None: no bound, for `why`. certain_ns: within which all are, given that no cost is above the plan's; None:
    no bound. measured_with: the confidence in what the samples say, of all operators together; late: of the results
    that may be beyond, what these costs use up; costs: by operator. `guaranteed` needs all that is asked."""

    share: float
    measured_with: float
    independent: bool = omitted(False)
    bound_ns: int | None
    certain_ns: int | None
    late: float
    guaranteed: bool
    why: str
    costs: Mapping[str, CountedCost]
    needed: int | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is promised of an output. bound_ns: from origin to result; None: there is none. from_admission_ns: likewise
    from admission on. missing: what else may keep results away. age_ns, reaction_ns: as asked, None: not asked;
    age_bound_ns, reaction_bound_ns: what is found, None: not bounded, or not asked; data_paths: of every source that
    these count. `guaranteed` needs all that is asked. confident: where the output asks for a confidence; the rest of
    the claim is then about every result all the same."""

    deadline_ns: int
    bound_ns: int | None
    guaranteed: bool
    why: str
    from_admission_ns: int | None
    trail: tuple[Step, ...]
    qos: Checks | None = omitted()
    missing: tuple[str, ...] = omitted(())
    age_ns: int | None = omitted()
    age_bound_ns: int | None = omitted()
    reaction_ns: int | None = omitted()
    reaction_bound_ns: int | None = omitted()
    data_paths: tuple[DataPath, ...] = omitted(())
    confident: ConfidentBound | None = omitted()

    @property
    def holds(self) -> bool:
        """Every result is in time, or as large a share of them as the output asks for."""
        return self.guaranteed or (self.confident is not None and self.confident.guaranteed)

    @property
    def judged_ns(self) -> int | None:
        """What results of a run are held against: the bound with the confidence that is asked, else that of all."""
        if self.confident is not None and self.confident.bound_ns is not None:
            return self.confident.bound_ns
        return self.bound_ns

    @property
    def is_fresh(self) -> bool:
        """The age and the reaction that are asked are guaranteed."""
        asked = ((self.age_ns, self.age_bound_ns), (self.reaction_ns, self.reaction_bound_ns))
        return all(limit is None or (bound is not None and bound <= limit) for limit, bound in asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedOverhead:
    """What the bounds charge for the runtime."""

    decision_ns: int
    drain_ns: int
    side_ns: int
    drained: bool
    drain_every_ns: int
    tuple_bytes: int
    per_node: bool
    loading_ns: int = omitted(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCharged:
    """said: where a node's charges come from."""

    said: str
    decision_ns: int
    drain_ns: int
    side_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """The work with a later deadline that is started just before: its name and its length in ns."""

    what: str
    ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tightest:
    """The demand test with the least room: demand_ns of work due within u_ns, and what it is made of."""

    u_ns: int
    demand_ns: int
    of: tuple[Ahead, ...]
    blocker: Blocker | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnalysis:
    """bounded: its units have response bounds."""

    bounded: bool
    utilisation: float | None = omitted()
    sub_deadlines_hold: bool | None = omitted()
    why: str
    tightest: Tightest | None = omitted()
    charges: NodeCharged


@dataclass(frozen=True, slots=True, kw_only=True)
class Policed:
    """What a source is held to, beyond its arrivals."""

    jitter_ns: int
    horizon_ns: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedAges:
    """By source that declares no `max_age`: the largest ones with which those outputs, which are not guaranteed without
    them, are guaranteed under this plan."""

    max_age_ns: Mapping[str, int]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """units_ns: response bound of each task unit, by its number."""

    charges: ChargedOverhead
    nodes: Mapping[str, NodeAnalysis]
    units_ns: Mapping[str, int]
    policing: Mapping[str, Policed] | None = omitted()
    ages: ProposedAges | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """The plan for the time after one host has failed, and what is lost then. plan: None: no output is left."""

    lost_outputs: tuple[str, ...]
    lost_sources: tuple[str, ...]
    lost_operators: tuple[str, ...]
    lost_sides: Mapping[str, tuple[str, ...]]
    moved: Mapping[str, str]
    plan: Plan | None


# -- all of it


def _local_plans(values: Any, path: str) -> Mapping[str, plan_pb2.LocalPlan]:
    """Of proto-JSON. Raises ShapeError."""
    if not isinstance(values, dict):
        raise ShapeError(path, "is not an object")
    from google.protobuf import json_format  # not needed to check a query

    found = {}
    for node, local in values.items():
        try:
            found[node] = json_format.ParseDict(local, plan_pb2.LocalPlan())
        except (json_format.ParseError, AttributeError, TypeError, ValueError) as error:
            why = str(error).partition("\n")[0]  # the rest lists what protobuf knows
            raise ShapeError(f"{path}.{node}", f"is no node's part of a plan: {why}") from None
    return found


def _local_plans_json(plans: Mapping[str, plan_pb2.LocalPlan]) -> dict[str, Any]:
    from google.protobuf import json_format

    return {node: json_format.MessageToDict(one, preserving_proto_field_name=True) for node, one in plans.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole plan. units: path or operator; placement: operator -> node; nodes: what runs on each; held: operators
    that were held to a node; alternatives: what other nodes would
    bring, None: no plan; apart_why: why what queries have in common does not run once."""

    shimekiri: int
    query: str
    queries: Mapping[str, QueryPart]
    status: Literal["optimal", "feasible"]
    allocator: Literal["deadline", "sqpr"]
    model: Literal["sound", "paper", "sqpr"]
    units: Literal["path", "operator"]
    solver: Solver
    inputs: Inputs
    objective: Objective
    sub_deadlines_ns: Mapping[str, int]
    held: Mapping[str, str]
    alternatives: Mapping[str, Mapping[str, Alternative | None]]
    tasks: Mapping[str, tuple[Task, ...]]
    placement: Mapping[str, str]
    graph: Graph
    cluster: Cluster
    nodes: Mapping[str, plan_pb2.LocalPlan] = coded(_local_plans, _local_plans_json)
    costs: Mapping[str, CostOrigin] | None = omitted()
    paper: PaperChoice | None = omitted()
    kept: IncumbentPart | None = omitted()
    guarantee: Mapping[str, Claim]
    analysis: Analysis
    policy_why: str = omitted("")
    apart_why: str = omitted("")
    hash: str
    failover: Mapping[str, Survivor] | None = omitted()

    @property
    def intact(self) -> bool:
        """Whether it is as it was made: its hash is that of the rest."""
        try:
            return digest(write(self)) == self.hash
        except ValueError:  # numbers that are not finite, half of a surrogate pair
            return False

    def canonical(self) -> bytes:
        """The bytes that are hashed."""
        return canonical(self.to_json())

    def sealed(self) -> Plan:
        """With its hash."""
        return replace(self, hash=digest(self.to_json()))

    def to_json(self) -> dict[str, Any]:
        """As parsed JSON, keys in the order of the fields."""
        values: dict[str, Any] = write(self)
        return values

    def text(self) -> str:
        """As the file has it: readable, keys in the order of the fields."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def canonical(values: Mapping[str, Any]) -> bytes:
    """The bytes that are hashed, of parsed JSON."""
    rest = {name: value for name, value in values.items() if name != "hash"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(values: Mapping[str, Any]) -> str:
    """The hash of parsed JSON, 64 hex digits. Raises ValueError for a number that is not finite."""
    return digests.sha256(canonical(values)).hexdigest()


def shaped(values: Any) -> Plan:
    """A plan of parsed JSON; its hash is not compared. Raises PlanFileError: no plan, another version, other keys."""
    if not isinstance(values, dict) or "shimekiri" not in values:
        raise PlanFileError("not_a_plan", "is not a plan")
    if values["shimekiri"] != VERSION:
        text = f"is a plan of version {values['shimekiri']}, this reads version {VERSION}"
        raise PlanFileError("other_version", text, "shimekiri")
    try:
        return read(Plan, values)
    except ShapeError as error:
        raise PlanFileError("not_a_plan", f"is not a plan: {error}", error.path) from None


def of(values: Any) -> Plan:
    """A plan of parsed JSON. Raises PlanFileError: no plan, another version, keys that are not its, a wrong hash."""
    plan = shaped(values)
    try:
        found = digest(values)
    except ValueError:
        raise PlanFileError("not_finite", "holds a number that is not finite") from None
    if found != plan.hash:
        told = f"its hash is {found[:8]}, but it says {plan.hash[:8]}"
        raise PlanFileError("changed", f"was changed after it was made: {told}", "hash")
    return plan


def parse(data: bytes) -> Plan:
    """A plan of a file's bytes. Raises PlanFileError."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PlanFileError("not_json", f"is not JSON ({error})") from None
    return of(values)
