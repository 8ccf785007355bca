"""What one node runs, in the core's own terms. Ids fit in 16 bits; durations are nanoseconds."""

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


@dataclass(frozen=True, slots=True)
class Source:
    """Where tuples are admitted."""

    id: int
    name: str
    stream: int
    max_age_ns: int = 0


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


@dataclass(frozen=True, slots=True)
class Unit:
    """A task unit: a path of operators that one task instance runs without a break ([P] 5.3)."""

    id: int
    operators: tuple[int, ...]
    sub_deadline_ns: int
    deadline_ns: int
    exits: tuple[int, ...] = ()  # streams that leave the unit, in the operators' order


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
    operator_by_id: dict[int, Operator] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.operator_by_id.update((operator.id, operator) for operator in self.operators)
