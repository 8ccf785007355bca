from protos import trace_pb2 as _trace_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PlanState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NONE: _ClassVar[PlanState]
    PREPARED: _ClassVar[PlanState]
    COMMITTED: _ClassVar[PlanState]
    DRAINING: _ClassVar[PlanState]
    ENDED: _ClassVar[PlanState]

class Measured(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEASURED_OPERATOR: _ClassVar[Measured]
    MEASURED_CALL: _ClassVar[Measured]
    MEASURED_AGE: _ClassVar[Measured]
NONE: PlanState
PREPARED: PlanState
COMMITTED: PlanState
DRAINING: PlanState
ENDED: PlanState
MEASURED_OPERATOR: Measured
MEASURED_CALL: Measured
MEASURED_AGE: Measured

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Description(_message.Message):
    __slots__ = ("node", "version", "operators_json", "data_port", "rt", "clock", "cores", "memory_bytes", "places")
    NODE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_JSON_FIELD_NUMBER: _ClassVar[int]
    DATA_PORT_FIELD_NUMBER: _ClassVar[int]
    RT_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    node: str
    version: str
    operators_json: str
    data_port: int
    rt: bool
    clock: str
    cores: int
    memory_bytes: int
    places: _containers.RepeatedCompositeFieldContainer[Place]
    def __init__(self, node: _Optional[str] = ..., version: _Optional[str] = ..., operators_json: _Optional[str] = ..., data_port: _Optional[int] = ..., rt: _Optional[bool] = ..., clock: _Optional[str] = ..., cores: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., places: _Optional[_Iterable[_Union[Place, _Mapping]]] = ...) -> None: ...

class Place(_message.Message):
    __slots__ = ("name", "data_port", "rt")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DATA_PORT_FIELD_NUMBER: _ClassVar[int]
    RT_FIELD_NUMBER: _ClassVar[int]
    name: str
    data_port: int
    rt: bool
    def __init__(self, name: _Optional[str] = ..., data_port: _Optional[int] = ..., rt: _Optional[bool] = ...) -> None: ...

class Route(_message.Message):
    __slots__ = ("index", "node", "address")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    index: int
    node: str
    address: str
    def __init__(self, index: _Optional[int] = ..., node: _Optional[str] = ..., address: _Optional[str] = ...) -> None: ...

class PrepareRequest(_message.Message):
    __slots__ = ("plan", "hash", "epoch", "routes")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ROUTES_FIELD_NUMBER: _ClassVar[int]
    plan: bytes
    hash: bytes
    epoch: int
    routes: _containers.RepeatedCompositeFieldContainer[Route]
    def __init__(self, plan: _Optional[bytes] = ..., hash: _Optional[bytes] = ..., epoch: _Optional[int] = ..., routes: _Optional[_Iterable[_Union[Route, _Mapping]]] = ...) -> None: ...

class CommitRequest(_message.Message):
    __slots__ = ("hash", "epoch")
    HASH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    epoch: int
    def __init__(self, hash: _Optional[bytes] = ..., epoch: _Optional[int] = ...) -> None: ...

class AbortRequest(_message.Message):
    __slots__ = ("hash", "epoch")
    HASH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    epoch: int
    def __init__(self, hash: _Optional[bytes] = ..., epoch: _Optional[int] = ...) -> None: ...

class StopRequest(_message.Message):
    __slots__ = ("hash", "epoch")
    HASH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    epoch: int
    def __init__(self, hash: _Optional[bytes] = ..., epoch: _Optional[int] = ...) -> None: ...

class PlansRequest(_message.Message):
    __slots__ = ("held", "wanted", "forget")
    HELD_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    held: _containers.RepeatedScalarFieldContainer[bytes]
    wanted: _containers.RepeatedScalarFieldContainer[bytes]
    forget: bool
    def __init__(self, held: _Optional[_Iterable[bytes]] = ..., wanted: _Optional[_Iterable[bytes]] = ..., forget: _Optional[bool] = ...) -> None: ...

class PlanDocument(_message.Message):
    __slots__ = ("hash", "plan", "why")
    HASH_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    plan: bytes
    why: str
    def __init__(self, hash: _Optional[bytes] = ..., plan: _Optional[bytes] = ..., why: _Optional[str] = ...) -> None: ...

class PlanReply(_message.Message):
    __slots__ = ("accepted", "why", "state")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    why: str
    state: PlanState
    def __init__(self, accepted: _Optional[bool] = ..., why: _Optional[str] = ..., state: _Optional[_Union[PlanState, str]] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PlanStatus(_message.Message):
    __slots__ = ("hash", "epoch", "state", "query", "ready", "waiting", "unacknowledged", "queries", "sources", "units")
    HASH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    UNACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    epoch: int
    state: PlanState
    query: str
    ready: int
    waiting: int
    unacknowledged: int
    queries: _containers.RepeatedScalarFieldContainer[str]
    sources: _containers.RepeatedCompositeFieldContainer[SourceStatus]
    units: _containers.RepeatedCompositeFieldContainer[UnitStatus]
    def __init__(self, hash: _Optional[bytes] = ..., epoch: _Optional[int] = ..., state: _Optional[_Union[PlanState, str]] = ..., query: _Optional[str] = ..., ready: _Optional[int] = ..., waiting: _Optional[int] = ..., unacknowledged: _Optional[int] = ..., queries: _Optional[_Iterable[str]] = ..., sources: _Optional[_Iterable[_Union[SourceStatus, _Mapping]]] = ..., units: _Optional[_Iterable[_Union[UnitStatus, _Mapping]]] = ...) -> None: ...

class OperatorIdentity(_message.Message):
    __slots__ = ("run", "version", "code", "edited")
    RUN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    EDITED_FIELD_NUMBER: _ClassVar[int]
    run: str
    version: str
    code: str
    edited: bool
    def __init__(self, run: _Optional[str] = ..., version: _Optional[str] = ..., code: _Optional[str] = ..., edited: _Optional[bool] = ...) -> None: ...

class Counter(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: int
    def __init__(self, name: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...

class SourceStatus(_message.Message):
    __slots__ = ("name", "admitted", "shed", "lost", "refused", "policed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    SHED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    POLICED_FIELD_NUMBER: _ClassVar[int]
    name: str
    admitted: int
    shed: int
    lost: int
    refused: int
    policed: int
    def __init__(self, name: _Optional[str] = ..., admitted: _Optional[int] = ..., shed: _Optional[int] = ..., lost: _Optional[int] = ..., refused: _Optional[int] = ..., policed: _Optional[int] = ...) -> None: ...

class UnitStatus(_message.Message):
    __slots__ = ("id", "operators", "sub_deadline_ns", "queued", "runs", "shed", "lost", "timed", "timed_ns", "worst_ns", "recent_ns", "unfused")
    ID_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    SUB_DEADLINE_NS_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    SHED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    TIMED_FIELD_NUMBER: _ClassVar[int]
    TIMED_NS_FIELD_NUMBER: _ClassVar[int]
    WORST_NS_FIELD_NUMBER: _ClassVar[int]
    RECENT_NS_FIELD_NUMBER: _ClassVar[int]
    UNFUSED_FIELD_NUMBER: _ClassVar[int]
    id: int
    operators: _containers.RepeatedScalarFieldContainer[str]
    sub_deadline_ns: int
    queued: int
    runs: int
    shed: int
    lost: int
    timed: int
    timed_ns: int
    worst_ns: int
    recent_ns: int
    unfused: int
    def __init__(self, id: _Optional[int] = ..., operators: _Optional[_Iterable[str]] = ..., sub_deadline_ns: _Optional[int] = ..., queued: _Optional[int] = ..., runs: _Optional[int] = ..., shed: _Optional[int] = ..., lost: _Optional[int] = ..., timed: _Optional[int] = ..., timed_ns: _Optional[int] = ..., worst_ns: _Optional[int] = ..., recent_ns: _Optional[int] = ..., unfused: _Optional[int] = ...) -> None: ...

class Latencies(_message.Message):
    __slots__ = ("most_ns", "results")
    MOST_NS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    most_ns: int
    results: int
    def __init__(self, most_ns: _Optional[int] = ..., results: _Optional[int] = ...) -> None: ...

class OutputStatus(_message.Message):
    __slots__ = ("name", "deadline_ns", "met", "late", "undecidable", "worst_ns", "latencies")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_NS_FIELD_NUMBER: _ClassVar[int]
    MET_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    UNDECIDABLE_FIELD_NUMBER: _ClassVar[int]
    WORST_NS_FIELD_NUMBER: _ClassVar[int]
    LATENCIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    deadline_ns: int
    met: int
    late: int
    undecidable: int
    worst_ns: int
    latencies: _containers.RepeatedCompositeFieldContainer[Latencies]
    def __init__(self, name: _Optional[str] = ..., deadline_ns: _Optional[int] = ..., met: _Optional[int] = ..., late: _Optional[int] = ..., undecidable: _Optional[int] = ..., worst_ns: _Optional[int] = ..., latencies: _Optional[_Iterable[_Union[Latencies, _Mapping]]] = ...) -> None: ...

class SpoolStatus(_message.Message):
    __slots__ = ("bytes", "limit_bytes", "oldest_ns", "full_in_ns", "dropped")
    BYTES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    OLDEST_NS_FIELD_NUMBER: _ClassVar[int]
    FULL_IN_NS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    limit_bytes: int
    oldest_ns: int
    full_in_ns: int
    dropped: int
    def __init__(self, bytes: _Optional[int] = ..., limit_bytes: _Optional[int] = ..., oldest_ns: _Optional[int] = ..., full_in_ns: _Optional[int] = ..., dropped: _Optional[int] = ...) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("node", "boot", "runtime_alive", "uptime_ns", "busy_ns", "overhead_ns", "queue_bytes", "plans", "counters", "records_written", "longest_hold_ns", "places", "outputs", "version", "rt", "restarts", "queue_limit_bytes", "operators", "spool", "connectors")
    NODE_FIELD_NUMBER: _ClassVar[int]
    BOOT_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_ALIVE_FIELD_NUMBER: _ClassVar[int]
    UPTIME_NS_FIELD_NUMBER: _ClassVar[int]
    BUSY_NS_FIELD_NUMBER: _ClassVar[int]
    OVERHEAD_NS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PLANS_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_WRITTEN_FIELD_NUMBER: _ClassVar[int]
    LONGEST_HOLD_NS_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RT_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    SPOOL_FIELD_NUMBER: _ClassVar[int]
    CONNECTORS_FIELD_NUMBER: _ClassVar[int]
    node: str
    boot: int
    runtime_alive: bool
    uptime_ns: int
    busy_ns: int
    overhead_ns: int
    queue_bytes: int
    plans: _containers.RepeatedCompositeFieldContainer[PlanStatus]
    counters: _containers.RepeatedCompositeFieldContainer[Counter]
    records_written: int
    longest_hold_ns: int
    places: _containers.RepeatedCompositeFieldContainer[StatusReply]
    outputs: _containers.RepeatedCompositeFieldContainer[OutputStatus]
    version: str
    rt: bool
    restarts: int
    queue_limit_bytes: int
    operators: _containers.RepeatedCompositeFieldContainer[OperatorIdentity]
    spool: SpoolStatus
    connectors: _containers.RepeatedCompositeFieldContainer[ConnectorStatus]
    def __init__(self, node: _Optional[str] = ..., boot: _Optional[int] = ..., runtime_alive: _Optional[bool] = ..., uptime_ns: _Optional[int] = ..., busy_ns: _Optional[int] = ..., overhead_ns: _Optional[int] = ..., queue_bytes: _Optional[int] = ..., plans: _Optional[_Iterable[_Union[PlanStatus, _Mapping]]] = ..., counters: _Optional[_Iterable[_Union[Counter, _Mapping]]] = ..., records_written: _Optional[int] = ..., longest_hold_ns: _Optional[int] = ..., places: _Optional[_Iterable[_Union[StatusReply, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[OutputStatus, _Mapping]]] = ..., version: _Optional[str] = ..., rt: _Optional[bool] = ..., restarts: _Optional[int] = ..., queue_limit_bytes: _Optional[int] = ..., operators: _Optional[_Iterable[_Union[OperatorIdentity, _Mapping]]] = ..., spool: _Optional[_Union[SpoolStatus, _Mapping]] = ..., connectors: _Optional[_Iterable[_Union[ConnectorStatus, _Mapping]]] = ...) -> None: ...

class ConnectorStatus(_message.Message):
    __slots__ = ("stream", "direction", "kind", "connected", "was_connected", "apart_ns", "why")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    WAS_CONNECTED_FIELD_NUMBER: _ClassVar[int]
    APART_NS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    stream: str
    direction: str
    kind: str
    connected: bool
    was_connected: bool
    apart_ns: int
    why: str
    def __init__(self, stream: _Optional[str] = ..., direction: _Optional[str] = ..., kind: _Optional[str] = ..., connected: _Optional[bool] = ..., was_connected: _Optional[bool] = ..., apart_ns: _Optional[int] = ..., why: _Optional[str] = ...) -> None: ...

class ProfileRequest(_message.Message):
    __slots__ = ("hash",)
    HASH_FIELD_NUMBER: _ClassVar[int]
    hash: bytes
    def __init__(self, hash: _Optional[bytes] = ...) -> None: ...

class OperatorCost(_message.Message):
    __slots__ = ("operator_id", "name", "tuples", "total_ns", "worst_ns", "squares_ns2", "elapsed_ns", "later_worst_ns", "degraded", "bucket_ns", "bucket_calls", "of")
    OPERATOR_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TUPLES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    WORST_NS_FIELD_NUMBER: _ClassVar[int]
    SQUARES_NS2_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_NS_FIELD_NUMBER: _ClassVar[int]
    LATER_WORST_NS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    BUCKET_NS_FIELD_NUMBER: _ClassVar[int]
    BUCKET_CALLS_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    operator_id: int
    name: str
    tuples: int
    total_ns: int
    worst_ns: int
    squares_ns2: float
    elapsed_ns: int
    later_worst_ns: int
    degraded: bool
    bucket_ns: _containers.RepeatedScalarFieldContainer[int]
    bucket_calls: _containers.RepeatedScalarFieldContainer[int]
    of: Measured
    def __init__(self, operator_id: _Optional[int] = ..., name: _Optional[str] = ..., tuples: _Optional[int] = ..., total_ns: _Optional[int] = ..., worst_ns: _Optional[int] = ..., squares_ns2: _Optional[float] = ..., elapsed_ns: _Optional[int] = ..., later_worst_ns: _Optional[int] = ..., degraded: _Optional[bool] = ..., bucket_ns: _Optional[_Iterable[int]] = ..., bucket_calls: _Optional[_Iterable[int]] = ..., of: _Optional[_Union[Measured, str]] = ...) -> None: ...

class ProfileReply(_message.Message):
    __slots__ = ("costs",)
    COSTS_FIELD_NUMBER: _ClassVar[int]
    costs: _containers.RepeatedCompositeFieldContainer[OperatorCost]
    def __init__(self, costs: _Optional[_Iterable[_Union[OperatorCost, _Mapping]]] = ...) -> None: ...

class HealthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HealthReply(_message.Message):
    __slots__ = ("serving", "why")
    SERVING_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    serving: bool
    why: str
    def __init__(self, serving: _Optional[bool] = ..., why: _Optional[str] = ...) -> None: ...
