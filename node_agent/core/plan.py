"""The plan of one node, in the core's own terms. Ids fit in 16 bits; durations are nanoseconds."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream that is admitted, produced, received or read on this node."""

    id: int
    name: str
    codec: str
    marked: bool = False  # leads to a join by lineage
    deadline_ns: int = 0  # least end-to-end deadline it leads to; 0: none
    producers: tuple[int, ...] = ()  # node numbers that may send it here
    last_deadline_ns: int = 0  # greatest end-to-end deadline it leads to; 0: as deadline_ns
    counted: bool = False  # leads to a window
    max_bytes: int = 0  # of one payload; 0: what fits one frame

    @property
    def last_ns(self) -> int:
        """After its origin, how long a tuple may still be in time for one of the outputs; 0: leads to none."""
        return self.last_deadline_ns or self.deadline_ns


@dataclass(frozen=True, slots=True)
class Pace:
    """Of admitted tuples any k * tuples + 1 in a row span at least (k * interval - slack) / parts ns, for k up to
    `most` (0: for every k)."""

    tuples: int
    interval: int  # in 1/parts ns, as is slack
    slack: int
    parts: int = 1
    most: int = 0


@dataclass(frozen=True, slots=True)
class Limit:
    """Of a source: at most `tuples` in any span_ns go on. value_json: which of them first; empty: the earliest."""

    tuples: int
    span_ns: int
    value_json: str = ""


@dataclass(frozen=True, slots=True)
class Pull:
    """How the node makes a source's tuples itself. every_ns: between two ticks, 0: an iterator, at its own pace;
    offset_ns: of the ticks; run: what is called, empty: a timer."""

    every_ns: int = 0
    offset_ns: int = 0
    run: str = ""
    with_json: str = "{}"


@dataclass(frozen=True, slots=True)
class Source:
    """Where tuples are admitted; what is beyond `paces`, `spans` or `limit` is shed. window: the operator whose windows
    they are; 0: clients send them, unless the node makes them itself (`pull`). on_full: what happens while the node's
    queues are full."""

    id: int
    name: str
    stream: int
    max_age_ns: int = 0
    paces: tuple[Pace, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()  # (tuples, ns): that many in a row span at least so long
    window: int = 0
    limit: Limit | None = None
    on_full: str = "refuse"  # or, shedding: drop-tail, front
    beat_ns: int = 0  # how often a heartbeat says how far it is
    pull: Pull | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """How an operator collects its inputs in windows; `protos/plan.proto` says it field by field. feeds: (source,
    input); names: of these sources, in their order."""

    kind: str
    length: int
    hop: int
    source: int
    feeds: tuple[tuple[int, int], ...]
    lateness_ns: int = 0
    first: bool = False
    useful_ns: int = 0
    wait_ns: int = 1_000_000_000
    by: str = ""
    on: tuple[str, ...] = ()
    size: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SideRule:
    """Of a side input: a value that may be older than max_age_ns is none, 0: of any age; shed: a tuple without a value
    is shed."""

    max_age_ns: int = 0
    shed: bool = False


@dataclass(frozen=True, slots=True)
class Sync:
    """How an operator's inputs are fused. by_stamp: stamps at most within_ns apart, of at most `keep` tuples of each
    input that wait; else every input once. timeout_ns: then what is there fires; 0: it never does. each: with by_stamp,
    each tuple as it comes, with all near it that are kept."""

    by_stamp: bool = False
    within_ns: int = 0
    timeout_ns: int = 0
    keep: int = 1
    each: bool = False


@dataclass(frozen=True, slots=True)
class Late:
    """What becomes of a tuple that is older than late_ns as an operator would start: it is shed, or `run` runs."""

    late_ns: int
    run: str = ""
    with_json: str = "{}"
    cost_ns: int = 0


@dataclass(frozen=True, slots=True)
class Shedding:
    """Tuples on their way to `windows` (operators) are not let into any of `units`; path: the units from there to the
    windows."""

    policy: str
    units: tuple[int, ...]
    windows: tuple[int, ...]
    most: int
    target_ns: int
    period_ns: int
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """Of an installed operator: what a plan was made for. code: hash of its sources, 64 hex digits."""

    run: str
    version: str
    code: str

    def __str__(self) -> str:
        return f"version {self.version}, code {self.code[:12]}"


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: what it runs, what triggers it (`inputs`) and what it only reads (`sides`)."""

    id: int
    name: str
    run: str
    inputs: tuple[int, ...]
    output: int
    cost_ns: int
    sub_deadline_ns: int = 0
    sides: tuple[tuple[str, int], ...] = ()  # (keyword, stream)
    join: bool = False
    hang_ns: int = 1_000_000_000
    with_json: str = "{}"
    at_most: tuple[tuple[int, int], ...] = ()  # (inputs, results): of so many inputs in a row at most so many results
    fresh: bool = False  # keeps no state from plan to plan
    called: tuple[str, ...] = ()  # what its own query calls its inputs; none: the streams' names
    window: Window | None = None  # its output stream is admitted, as source `window.source`
    closes: int = 0  # makes the results of that operator's windows
    late: Late | None = None
    side_rules: tuple[SideRule, ...] = ()  # of `sides`, in their order; none: values of any age
    sync: Sync | None = None  # with `join`: its inputs are fused, not joined by lineage


@dataclass(frozen=True, slots=True)
class Service:
    """A service curve that a unit is promised ([Q] 2.3). period_ns 0: a delay bound, `first`: for tuples that find the
    unit idle only; else rate-latency: after `latency_ns`, `tuples` in every `period_ns`."""

    latency_ns: int
    period_ns: int = 0
    tuples: int = 1
    first: bool = False


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Part of an arrival curve: at most 1 + (t + ahead_ns) / period_ns tuples in any closed span t ([Q] 2.2)."""

    ahead_ns: int
    period_ns: int


@dataclass(frozen=True, slots=True)
class Parameters:
    """Of a policy. phi_ns, hop_phi_ns: error bounds of deadlines and of window hops ([A] 1.3), the larger of which
    counts; phi_ns 0: by the node's deadlines. share_ppm: the part of the time that decisions may take. first_k: basic
    batches, to begin with."""

    phi_ns: int = 0
    hop_phi_ns: int = 0
    share_ppm: int = 20_000
    first_k: int = 1


DEFAULTS = Parameters()


@dataclass(frozen=True, slots=True)
class Unit:
    """A task unit: a path of operators that one task instance runs without a break ([P] 5.3)."""

    id: int
    operators: tuple[int, ...]
    sub_deadline_ns: int
    deadline_ns: int
    exits: tuple[int, ...] = ()  # streams that leave the unit, in the operators' order
    service: tuple[Service, ...] = ()  # promised; none: the sub-deadline as a delay bound
    arrivals: tuple[Arrivals, ...] = ()  # declared; the least of them counts
    last_deadline_ns: int = 0  # greatest end-to-end deadline it leads to; 0: as deadline_ns
    queue_bytes: int = 0  # limit of its queue; 0: the node's only
    on_full: str = "drop-tail"  # at that limit; or front

    @property
    def last_ns(self) -> int:
        """After its origin, how long a tuple may still be in time for one of the outputs; 0: leads to none."""
        return self.last_deadline_ns or self.deadline_ns


@dataclass(frozen=True, slots=True)
class Output:
    """A result stream that is delivered here."""

    id: int
    name: str
    stream: int
    deadline_ns: int


@dataclass(frozen=True, slots=True)
class Peer:
    """Another node that this one sends to or receives from."""

    index: int
    name: str
    latency_ns: int = 0
    bandwidth_bps: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The local plan of one node, under one deployment."""

    query: str
    node: str
    index: int
    hash: int  # first 8 bytes of the plan's SHA-256, big-endian
    epoch: int  # deployment; its low seven bits are in every trace record
    policy: str
    largest_batch: int
    streams: tuple[Stream, ...] = ()
    sources: tuple[Source, ...] = ()
    operators: tuple[Operator, ...] = ()
    units: tuple[Unit, ...] = ()
    outputs: tuple[Output, ...] = ()
    sends: tuple[tuple[int, int], ...] = ()  # (stream, peer's node number)
    peers: tuple[Peer, ...] = ()
    memory_bytes: int = 0
    emulate_cost_ns: int = 0
    cpu: int = -1
    parameters: Parameters = DEFAULTS
    sheddings: tuple[Shedding, ...] = ()
    installed: tuple[Identity, ...] = ()  # what its operators run; none: it was not made by a planner
    operator_by_id: dict[int, Operator] = field(init=False, repr=False, compare=False, default_factory=dict)

    @property
    def runs(self) -> set[str]:
        """The installed operators that it names."""
        found = {operator.run for operator in self.operators}
        found |= {operator.late.run for operator in self.operators if operator.late is not None}
        found |= {operator.window.size for operator in self.operators if operator.window is not None}
        found |= {source.pull.run for source in self.sources if source.pull is not None}
        return found - {""}

    def __post_init__(self) -> None:
        self.operator_by_id.update((operator.id, operator) for operator in self.operators)
