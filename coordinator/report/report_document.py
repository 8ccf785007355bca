"""The contents of report.json: what an engine found out of one run. Keys are named as fields, but `blame`, `dearer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from protos import json_shape
from protos.json_shape import Json, empty, key, omitted

Share = tuple[float, float] | None  # [lo, hi] of what was offered; None: nothing was
# Why a result was missed; docs/explanation/blame.md has the rule of each. A new one goes to the end of its line.
CauseKind = Literal[
    "cost_above_plan", "burst", "overloaded_core", "blocked", "batch", "running",  # of the time on a node
    "link", "admission_age", "clock", "pause", "partner", "inputs",  # of the time elsewhere, or when nothing ran
    "policed", "rate", "queue_full", "operator_failed", "window", "restart", "stopped", "unknown",
]  # fmt: skip
HopKind = Literal["admission", "queue", "run", "link", "rest"]
AgeHopKind = Literal["admission", "queue", "run", "link", "rest", "side", "window", "inputs"]


@dataclass(frozen=True, slots=True)
class Latencies:
    """Quantiles of the delivered results' latencies, upper bounds; None: not known."""

    p50: int | None
    p95: int | None
    p99: int | None
    max: int | None


@dataclass(frozen=True, slots=True)
class Windows:
    """What became of the windows of one operator at one output. abandoned: by cause; not_counted: sentences."""

    all: int
    given: int
    on_time: int
    filtered: int
    abandoned: Mapping[str, int]
    skipped: int
    unended: int
    never_opened: int
    unknown: int
    idle: int
    opened: int
    cut_off: int
    share: float | None
    load: float | None
    long_run_share: float | None
    long_run_share_why: str | None
    not_counted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Missed:
    """How many results were missed. met_idle: met ones of windows that nothing was fed into, which were not offered;
    between: what lies between the ends of the share, in results."""

    missed: int
    met_idle: int
    between: Mapping[str, int]
    missed_of_offered: Share


@dataclass(frozen=True, slots=True)
class HeldShare:
    """Of an output that asks for a confidence: how many of its results were beyond the bound for certain. least, most:
    of the share that is, each with 95 %; says: whether a run of this size shows that `share` of them keep the bound, or
    that they do not, or leaves it open; needed: so many results, none beyond, would show it."""

    share: float
    results: int
    beyond: int
    least: float
    most: float
    says: Literal["kept", "broken", "open"]
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output. bound_ns: of the last plan that has it, with the confidence that it asks for where it does: `held`;
    windows: by operator."""

    deadline_ns: int
    bound_ns: int | None
    above_bound: int | None
    above_bound_by_ns: int | None
    met: int
    late: int
    shed: int
    lost: int
    undecidable: int
    shed_unsure: int
    lost_unsure: int
    delivered: int
    miss_ratio: float | None
    miss_ratio_hi: float | None
    miss_ratio_paper: float | None
    latency_ns: Latencies
    latency_bound: str
    quantiles_ns: tuple[int | None, ...]
    windows: Mapping[str, Windows] = empty()
    missed: int
    met_idle: int
    between: Mapping[str, int]
    missed_of_offered: Share
    held: HeldShare | None = omitted()


@dataclass(frozen=True, slots=True)
class Query:
    """The sums over a query's outputs."""

    outputs: tuple[str, ...]
    met: int
    late: int
    shed: int
    lost: int
    undecidable: int
    shed_unsure: int
    lost_unsure: int
    delivered: int
    miss_ratio: float | None
    miss_ratio_hi: float | None
    missed: int
    met_idle: int
    between: Mapping[str, int]
    missed_of_offered: Share


@dataclass(frozen=True, slots=True)
class Offered:
    """Tuples that clients offered to one source. refused: by reason; policed: of the admitted."""

    offered: int
    admitted: int
    refused: Mapping[str, int]
    policed: int


@dataclass(frozen=True, slots=True)
class ShedTuples:
    """By one policy. rate: of those that came."""

    tuples: int
    rate: float | None


@dataclass(frozen=True, slots=True)
class ShedOfSource:
    """Tuples of one source of which something was shed, by policy."""

    admitted: int
    policies: Mapping[str, ShedTuples]


@dataclass(frozen=True, slots=True)
class ShedAtUnit:
    """Tuples that one unit shed, by policy; by policy selectivity: results."""

    came: int
    policies: Mapping[str, ShedTuples]


@dataclass(frozen=True, slots=True)
class Shed:
    """By source and by unit."""

    sources: Mapping[str, ShedOfSource]
    units: Mapping[str, ShedAtUnit]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One kind of contradiction in the trace of one incarnation."""

    node: str
    boot: str
    what: str
    times: int


@dataclass(frozen=True, slots=True)
class Conservation:
    """Whether every tuple is accounted for. windows: of the admitted; problems: the first contradictions."""

    admitted: int
    windows: int
    accounted: int
    obligations: int
    by_outcome: Mapping[str, int]
    by_cause: Mapping[str, int]
    balanced: bool
    problem_count: int
    problems: tuple[str, ...]
    contradictions: tuple[Contradiction, ...]

    @property
    def word(self) -> Literal["balanced", "not balanced", "nothing admitted"]:
        """For people: nothing balances where nothing was admitted."""
        if not self.balanced:
            return "not balanced"
        return "balanced" if self.admitted > self.windows else "nothing admitted"


@dataclass(frozen=True, slots=True)
class TraceState:
    """How complete the trace of one incarnation is. records: as declared; why: it is not complete."""

    node: str
    boot: str
    records: int | None
    found: int
    unusable: int
    dropped: int
    lost: int
    other_plans: int
    status: str
    complete: bool
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Completeness:
    """How complete the traces of the run are."""

    complete: bool
    incarnations: tuple[TraceState, ...]
    nodes_without_trace: tuple[str, ...]
    damage: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LostInUnit:
    """Tuples that ended in one unit for one cause. log: where the agent's log is that says why."""

    node: str
    unit: int
    operators: tuple[str, ...]
    cause: str
    lost: int
    log: str | None = None


@dataclass(frozen=True, slots=True)
class HopTime:
    """Time that results spent on one hop: on average, and of the slowest."""

    hop: str
    kind: str
    mean_ns: int | None
    tail_mean_ns: int | None
    share: float | None
    tail_share: float | None


@dataclass(frozen=True, slots=True)
class LatencyBreakdown:
    """Where the time of one output's delivered results went."""

    results: int
    tail_results: int
    hops: tuple[HopTime, ...]


@dataclass(frozen=True, slots=True)
class CostOverrun:
    """A unit that ran longer than its plan counts. counted_ns: what the plan counts for an instance; longer: how many
    of the `instances` took a tenth more than that; longest_ns: the longest of them."""

    node: str
    unit: int
    operators: tuple[str, ...]
    counted_ns: int
    instances: int
    longer: int
    longest_ns: int


@dataclass(frozen=True, slots=True)
class BeganAnew:
    """Operators whose state went with a runtime. after_ns: since the first record of that clock."""

    node: str
    boot: str
    operators: tuple[str, ...]
    after_ns: int


@dataclass(frozen=True, slots=True)
class WaitedFor:
    """Instances of one unit that ran while a tuple waited: how many, and how long in all. query: "" of a shared one."""

    operators: tuple[str, ...]
    query: str
    node: str
    instances: int
    ns: int


@dataclass(frozen=True, slots=True)
class MissHop:
    """One stretch of a missed result's way: from_ns to until_ns on the node's clock. place: operators of a unit, the
    two nodes of a link, also of one that a rest is for, or the source. waited_for: longest first, at most five."""

    kind: HopKind
    place: tuple[str, ...]
    node: str
    from_ns: int
    until_ns: int
    waited_ns: int
    ran_ns: int
    waited_for: tuple[WaitedFor, ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a result was missed, or a part of why. subject: the operator, source or link that it names, or "", where the
    node alone is meant; query: whose that is, or ""; ns: of the latency, 0 where the tuple was shed or lost for it;
    text: one sentence."""

    kind: CauseKind
    node: str
    subject: str
    query: str
    ns: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """One missed result. node, boot, at_ns: of the record that tells of its end; of one that went with a runtime, of
    the last record about it. latency_ns: lower bound; None where it was not delivered. causes: heaviest first."""

    output: str
    query: str
    source: str
    epoch: int
    seq: int
    ordinal: int
    outcome: Literal["late", "undecidable", "lost", "shed"]
    node: str
    boot: str
    at_ns: int
    latency_ns: int | None
    deadline_ns: int
    hops: tuple[MissHop, ...]
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Misses:
    """Every missed result by its main cause, and the worst of them; undecidable ones among them. by_cause: output ->
    kind -> results; worst: at most 200, those with most time above their deadline first; stories: of three of the
    worst, with instants."""

    by_cause: Mapping[str, Mapping[str, int]]
    worst: tuple[Miss, ...]
    stories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles of upper bounds, ns; None: not known."""

    p50: int | None
    p99: int | None
    max: int | None


@dataclass(frozen=True, slots=True)
class OldResult:
    """One result, of the tuple (source, epoch, seq). age_ns: None: not bounded; oldest: the source of the datum that
    its age counts from."""

    source: str
    epoch: int
    seq: int
    ordinal: int
    age_least_ns: int
    age_ns: int | None
    oldest: str


@dataclass(frozen=True, slots=True)
class AgeHop:
    """Part of the age of some results, on average. kind: a `HopKind`; `side`: at that side input, until it was read;
    `window` and `inputs`: in a window, or a fusion, until it was whole. place: as in hops of a latency breakdown."""

    kind: AgeHopKind
    place: str
    mean_ns: int
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataAge:
    """How old the oldest datum behind each result was. results: that have such a datum; without_data: that have none;
    above: of them for certain, undecidable: it may be; share: of results that were above, its least and its most.
    worst: the oldest ones; hops, longest first: of so many of these (`blamed`), those above the limit or the worst."""

    limit_ns: int
    bound_ns: int | None
    above_bound: int | None
    results: int
    without_data: int
    above: int
    undecidable: int
    share: Share
    age_ns: Spread
    worst: tuple[OldResult, ...]
    blamed: int = 0
    hops: tuple[AgeHop, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """From the origins of a source's tuples to the first result that one of them, or a later one, is behind. answered:
    by such a result; unanswered: by none, although the limit has passed; undecided: nobody knows, or it has not yet.
    above: of the answered for certain, undecidable: it may be; share: of tuples that were above, or unanswered."""

    limit_ns: int
    bound_ns: int | None
    above_bound: int | None
    tuples: int
    answered: int
    unanswered: int
    undecided: int
    above: int
    undecidable: int
    share: Share
    reaction_ns: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Of the data behind one output's results. age, reactions: where it asks for them, reactions by source. unread:
    results on whose way an operator read a side input without a value; untold: why not all data are known."""

    age: DataAge | None
    reactions: Mapping[str, Reaction]
    unread: int
    untold: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Of one run. An engine leaves out what no ledger tells: `engine`, `cost_overruns`, `began_anew`, `misses` and
    `verdict`, the scene's."""

    run: str
    plan_hash: str
    earlier: tuple[str, ...] = omitted(())
    lacking: tuple[str, ...]
    completeness: Completeness
    outputs: Mapping[str, Output]
    offered: Mapping[str, Offered]
    queries: Mapping[str, Query] = empty()
    conservation: Conservation
    shed: Shed
    degraded: Mapping[str, int]
    lost_in_units: tuple[LostInUnit, ...]
    latency_breakdowns: Mapping[str, LatencyBreakdown] = key("blame")
    freshness: Mapping[str, Freshness] = empty()
    engine: str | None = omitted()
    cost_overruns: tuple[CostOverrun, ...] | None = omitted(key="dearer")
    began_anew: tuple[BeganAnew, ...] | None = omitted()
    misses: Misses | None = omitted()
    verdict: Json = omitted()

    def document(self) -> Json:
        """What report.json has."""
        return json_shape.write(self)

    @classmethod
    def from_document(cls, document: Json) -> Report:
        """Of report.json. Raises ShapeError."""
        return json_shape.read(cls, document)


def by_end(found: Output | Query) -> dict[str, int]:
    """Results by how they ended."""
    return {
        "met": found.met,
        "late": found.late,
        "shed": found.shed,
        "lost": found.lost,
        "undecidable": found.undecidable,
    }
