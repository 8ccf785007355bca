from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LocalPlan(_message.Message):
    __slots__ = ("version", "query", "node", "index", "policy", "streams", "sources", "operators", "units", "outputs", "sends", "peers", "memory_bytes", "emulate_cost_ns", "cpu", "sheddings", "installed")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    SENDS_FIELD_NUMBER: _ClassVar[int]
    PEERS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    EMULATE_COST_NS_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    SHEDDINGS_FIELD_NUMBER: _ClassVar[int]
    INSTALLED_FIELD_NUMBER: _ClassVar[int]
    version: int
    query: str
    node: str
    index: int
    policy: Policy
    streams: _containers.RepeatedCompositeFieldContainer[Stream]
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    operators: _containers.RepeatedCompositeFieldContainer[Operator]
    units: _containers.RepeatedCompositeFieldContainer[Unit]
    outputs: _containers.RepeatedCompositeFieldContainer[Output]
    sends: _containers.RepeatedCompositeFieldContainer[Send]
    peers: _containers.RepeatedCompositeFieldContainer[Peer]
    memory_bytes: int
    emulate_cost_ns: int
    cpu: int
    sheddings: _containers.RepeatedCompositeFieldContainer[Shedding]
    installed: _containers.RepeatedCompositeFieldContainer[Installed]
    def __init__(self, version: _Optional[int] = ..., query: _Optional[str] = ..., node: _Optional[str] = ..., index: _Optional[int] = ..., policy: _Optional[_Union[Policy, _Mapping]] = ..., streams: _Optional[_Iterable[_Union[Stream, _Mapping]]] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., operators: _Optional[_Iterable[_Union[Operator, _Mapping]]] = ..., units: _Optional[_Iterable[_Union[Unit, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[Output, _Mapping]]] = ..., sends: _Optional[_Iterable[_Union[Send, _Mapping]]] = ..., peers: _Optional[_Iterable[_Union[Peer, _Mapping]]] = ..., memory_bytes: _Optional[int] = ..., emulate_cost_ns: _Optional[int] = ..., cpu: _Optional[int] = ..., sheddings: _Optional[_Iterable[_Union[Shedding, _Mapping]]] = ..., installed: _Optional[_Iterable[_Union[Installed, _Mapping]]] = ...) -> None: ...

class Installed(_message.Message):
    __slots__ = ("run", "version", "code")
    RUN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    run: str
    version: str
    code: str
    def __init__(self, run: _Optional[str] = ..., version: _Optional[str] = ..., code: _Optional[str] = ...) -> None: ...

class Policy(_message.Message):
    __slots__ = ("name", "largest_batch", "phi_ns", "hop_phi_ns", "share_ppm", "first_k")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LARGEST_BATCH_FIELD_NUMBER: _ClassVar[int]
    PHI_NS_FIELD_NUMBER: _ClassVar[int]
    HOP_PHI_NS_FIELD_NUMBER: _ClassVar[int]
    SHARE_PPM_FIELD_NUMBER: _ClassVar[int]
    FIRST_K_FIELD_NUMBER: _ClassVar[int]
    name: str
    largest_batch: int
    phi_ns: int
    hop_phi_ns: int
    share_ppm: int
    first_k: int
    def __init__(self, name: _Optional[str] = ..., largest_batch: _Optional[int] = ..., phi_ns: _Optional[int] = ..., hop_phi_ns: _Optional[int] = ..., share_ppm: _Optional[int] = ..., first_k: _Optional[int] = ...) -> None: ...

class Stream(_message.Message):
    __slots__ = ("id", "name", "codec", "marked", "deadline_ns", "producers", "last_deadline_ns", "counted", "max_bytes")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CODEC_FIELD_NUMBER: _ClassVar[int]
    MARKED_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_NS_FIELD_NUMBER: _ClassVar[int]
    PRODUCERS_FIELD_NUMBER: _ClassVar[int]
    LAST_DEADLINE_NS_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    codec: str
    marked: bool
    deadline_ns: int
    producers: _containers.RepeatedScalarFieldContainer[int]
    last_deadline_ns: int
    counted: bool
    max_bytes: int
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., codec: _Optional[str] = ..., marked: _Optional[bool] = ..., deadline_ns: _Optional[int] = ..., producers: _Optional[_Iterable[int]] = ..., last_deadline_ns: _Optional[int] = ..., counted: _Optional[bool] = ..., max_bytes: _Optional[int] = ...) -> None: ...

class Source(_message.Message):
    __slots__ = ("id", "name", "stream", "max_age_ns", "paces", "spans", "window", "limit", "beat_ns", "on_full", "pull", "connector")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_NS_FIELD_NUMBER: _ClassVar[int]
    PACES_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BEAT_NS_FIELD_NUMBER: _ClassVar[int]
    ON_FULL_FIELD_NUMBER: _ClassVar[int]
    PULL_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    stream: int
    max_age_ns: int
    paces: _containers.RepeatedCompositeFieldContainer[Pace]
    spans: _containers.RepeatedCompositeFieldContainer[Span]
    window: int
    limit: Limit
    beat_ns: int
    on_full: str
    pull: Pull
    connector: Connector
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., stream: _Optional[int] = ..., max_age_ns: _Optional[int] = ..., paces: _Optional[_Iterable[_Union[Pace, _Mapping]]] = ..., spans: _Optional[_Iterable[_Union[Span, _Mapping]]] = ..., window: _Optional[int] = ..., limit: _Optional[_Union[Limit, _Mapping]] = ..., beat_ns: _Optional[int] = ..., on_full: _Optional[str] = ..., pull: _Optional[_Union[Pull, _Mapping]] = ..., connector: _Optional[_Union[Connector, _Mapping]] = ...) -> None: ...

class Connector(_message.Message):
    __slots__ = ("kind", "url", "topic", "encoding", "schema", "stamp", "qos")
    KIND_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    QOS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    url: str
    topic: str
    encoding: str
    schema: str
    stamp: str
    qos: int
    def __init__(self, kind: _Optional[str] = ..., url: _Optional[str] = ..., topic: _Optional[str] = ..., encoding: _Optional[str] = ..., schema: _Optional[str] = ..., stamp: _Optional[str] = ..., qos: _Optional[int] = ...) -> None: ...

class Pull(_message.Message):
    __slots__ = ("every_ns", "offset_ns", "run", "with_json")
    EVERY_NS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_NS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    WITH_JSON_FIELD_NUMBER: _ClassVar[int]
    every_ns: int
    offset_ns: int
    run: str
    with_json: str
    def __init__(self, every_ns: _Optional[int] = ..., offset_ns: _Optional[int] = ..., run: _Optional[str] = ..., with_json: _Optional[str] = ...) -> None: ...

class Limit(_message.Message):
    __slots__ = ("tuples", "span_ns", "value_json")
    TUPLES_FIELD_NUMBER: _ClassVar[int]
    SPAN_NS_FIELD_NUMBER: _ClassVar[int]
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    tuples: int
    span_ns: int
    value_json: str
    def __init__(self, tuples: _Optional[int] = ..., span_ns: _Optional[int] = ..., value_json: _Optional[str] = ...) -> None: ...

class Pace(_message.Message):
    __slots__ = ("tuples", "interval", "slack", "parts", "most")
    TUPLES_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    SLACK_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    tuples: int
    interval: int
    slack: int
    parts: int
    most: int
    def __init__(self, tuples: _Optional[int] = ..., interval: _Optional[int] = ..., slack: _Optional[int] = ..., parts: _Optional[int] = ..., most: _Optional[int] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ("tuples", "span_ns")
    TUPLES_FIELD_NUMBER: _ClassVar[int]
    SPAN_NS_FIELD_NUMBER: _ClassVar[int]
    tuples: int
    span_ns: int
    def __init__(self, tuples: _Optional[int] = ..., span_ns: _Optional[int] = ...) -> None: ...

class Operator(_message.Message):
    __slots__ = ("id", "name", "run", "with_json", "cost_ns", "inputs", "sides", "output", "join", "hang_ns", "sub_deadline_ns", "at_most", "fresh", "called", "window", "closes", "late", "sync")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    WITH_JSON_FIELD_NUMBER: _ClassVar[int]
    COST_NS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    SIDES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    HANG_NS_FIELD_NUMBER: _ClassVar[int]
    SUB_DEADLINE_NS_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    CALLED_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    CLOSES_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    SYNC_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    run: str
    with_json: str
    cost_ns: int
    inputs: _containers.RepeatedScalarFieldContainer[int]
    sides: _containers.RepeatedCompositeFieldContainer[Side]
    output: int
    join: bool
    hang_ns: int
    sub_deadline_ns: int
    at_most: _containers.RepeatedCompositeFieldContainer[Most]
    fresh: bool
    called: _containers.RepeatedScalarFieldContainer[str]
    window: Window
    closes: int
    late: Late
    sync: Sync
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., run: _Optional[str] = ..., with_json: _Optional[str] = ..., cost_ns: _Optional[int] = ..., inputs: _Optional[_Iterable[int]] = ..., sides: _Optional[_Iterable[_Union[Side, _Mapping]]] = ..., output: _Optional[int] = ..., join: _Optional[bool] = ..., hang_ns: _Optional[int] = ..., sub_deadline_ns: _Optional[int] = ..., at_most: _Optional[_Iterable[_Union[Most, _Mapping]]] = ..., fresh: _Optional[bool] = ..., called: _Optional[_Iterable[str]] = ..., window: _Optional[_Union[Window, _Mapping]] = ..., closes: _Optional[int] = ..., late: _Optional[_Union[Late, _Mapping]] = ..., sync: _Optional[_Union[Sync, _Mapping]] = ...) -> None: ...

class Sync(_message.Message):
    __slots__ = ("by_stamp", "within_ns", "timeout_ns", "keep", "each")
    BY_STAMP_FIELD_NUMBER: _ClassVar[int]
    WITHIN_NS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_NS_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    EACH_FIELD_NUMBER: _ClassVar[int]
    by_stamp: bool
    within_ns: int
    timeout_ns: int
    keep: int
    each: bool
    def __init__(self, by_stamp: _Optional[bool] = ..., within_ns: _Optional[int] = ..., timeout_ns: _Optional[int] = ..., keep: _Optional[int] = ..., each: _Optional[bool] = ...) -> None: ...

class Window(_message.Message):
    __slots__ = ("kind", "length", "hop", "lateness_ns", "first", "useful_ns", "wait_ns", "by", "on", "size", "source", "feeds")
    KIND_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    HOP_FIELD_NUMBER: _ClassVar[int]
    LATENESS_NS_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    USEFUL_NS_FIELD_NUMBER: _ClassVar[int]
    WAIT_NS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    length: int
    hop: int
    lateness_ns: int
    first: bool
    useful_ns: int
    wait_ns: int
    by: str
    on: _containers.RepeatedScalarFieldContainer[str]
    size: str
    source: int
    feeds: _containers.RepeatedCompositeFieldContainer[Feed]
    def __init__(self, kind: _Optional[str] = ..., length: _Optional[int] = ..., hop: _Optional[int] = ..., lateness_ns: _Optional[int] = ..., first: _Optional[bool] = ..., useful_ns: _Optional[int] = ..., wait_ns: _Optional[int] = ..., by: _Optional[str] = ..., on: _Optional[_Iterable[str]] = ..., size: _Optional[str] = ..., source: _Optional[int] = ..., feeds: _Optional[_Iterable[_Union[Feed, _Mapping]]] = ...) -> None: ...

class Feed(_message.Message):
    __slots__ = ("source", "input", "name")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    source: int
    input: int
    name: str
    def __init__(self, source: _Optional[int] = ..., input: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class Late(_message.Message):
    __slots__ = ("late_ns", "run", "with_json", "cost_ns")
    LATE_NS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    WITH_JSON_FIELD_NUMBER: _ClassVar[int]
    COST_NS_FIELD_NUMBER: _ClassVar[int]
    late_ns: int
    run: str
    with_json: str
    cost_ns: int
    def __init__(self, late_ns: _Optional[int] = ..., run: _Optional[str] = ..., with_json: _Optional[str] = ..., cost_ns: _Optional[int] = ...) -> None: ...

class Shedding(_message.Message):
    __slots__ = ("policy", "units", "windows", "most", "target_ns", "period_ns", "path")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    TARGET_NS_FIELD_NUMBER: _ClassVar[int]
    PERIOD_NS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    policy: str
    units: _containers.RepeatedScalarFieldContainer[int]
    windows: _containers.RepeatedScalarFieldContainer[int]
    most: int
    target_ns: int
    period_ns: int
    path: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, policy: _Optional[str] = ..., units: _Optional[_Iterable[int]] = ..., windows: _Optional[_Iterable[int]] = ..., most: _Optional[int] = ..., target_ns: _Optional[int] = ..., period_ns: _Optional[int] = ..., path: _Optional[_Iterable[int]] = ...) -> None: ...

class Most(_message.Message):
    __slots__ = ("inputs", "results")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    inputs: int
    results: int
    def __init__(self, inputs: _Optional[int] = ..., results: _Optional[int] = ...) -> None: ...

class Side(_message.Message):
    __slots__ = ("port", "stream", "max_age_ns", "shed")
    PORT_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_NS_FIELD_NUMBER: _ClassVar[int]
    SHED_FIELD_NUMBER: _ClassVar[int]
    port: str
    stream: int
    max_age_ns: int
    shed: bool
    def __init__(self, port: _Optional[str] = ..., stream: _Optional[int] = ..., max_age_ns: _Optional[int] = ..., shed: _Optional[bool] = ...) -> None: ...

class Unit(_message.Message):
    __slots__ = ("id", "operators", "sub_deadline_ns", "deadline_ns", "exits", "service", "arrivals", "last_deadline_ns", "queue_bytes", "on_full")
    ID_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    SUB_DEADLINE_NS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_NS_FIELD_NUMBER: _ClassVar[int]
    EXITS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    ARRIVALS_FIELD_NUMBER: _ClassVar[int]
    LAST_DEADLINE_NS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ON_FULL_FIELD_NUMBER: _ClassVar[int]
    id: int
    operators: _containers.RepeatedScalarFieldContainer[int]
    sub_deadline_ns: int
    deadline_ns: int
    exits: _containers.RepeatedScalarFieldContainer[int]
    service: _containers.RepeatedCompositeFieldContainer[Service]
    arrivals: _containers.RepeatedCompositeFieldContainer[Arrivals]
    last_deadline_ns: int
    queue_bytes: int
    on_full: str
    def __init__(self, id: _Optional[int] = ..., operators: _Optional[_Iterable[int]] = ..., sub_deadline_ns: _Optional[int] = ..., deadline_ns: _Optional[int] = ..., exits: _Optional[_Iterable[int]] = ..., service: _Optional[_Iterable[_Union[Service, _Mapping]]] = ..., arrivals: _Optional[_Iterable[_Union[Arrivals, _Mapping]]] = ..., last_deadline_ns: _Optional[int] = ..., queue_bytes: _Optional[int] = ..., on_full: _Optional[str] = ...) -> None: ...

class Service(_message.Message):
    __slots__ = ("latency_ns", "period_ns", "tuples", "first")
    LATENCY_NS_FIELD_NUMBER: _ClassVar[int]
    PERIOD_NS_FIELD_NUMBER: _ClassVar[int]
    TUPLES_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    latency_ns: int
    period_ns: int
    tuples: int
    first: bool
    def __init__(self, latency_ns: _Optional[int] = ..., period_ns: _Optional[int] = ..., tuples: _Optional[int] = ..., first: _Optional[bool] = ...) -> None: ...

class Arrivals(_message.Message):
    __slots__ = ("ahead_ns", "period_ns")
    AHEAD_NS_FIELD_NUMBER: _ClassVar[int]
    PERIOD_NS_FIELD_NUMBER: _ClassVar[int]
    ahead_ns: int
    period_ns: int
    def __init__(self, ahead_ns: _Optional[int] = ..., period_ns: _Optional[int] = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("id", "name", "stream", "deadline_ns", "connector")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_NS_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    stream: int
    deadline_ns: int
    connector: Connector
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., stream: _Optional[int] = ..., deadline_ns: _Optional[int] = ..., connector: _Optional[_Union[Connector, _Mapping]] = ...) -> None: ...

class Send(_message.Message):
    __slots__ = ("stream", "peer")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    stream: int
    peer: int
    def __init__(self, stream: _Optional[int] = ..., peer: _Optional[int] = ...) -> None: ...

class Peer(_message.Message):
    __slots__ = ("index", "name", "latency_ns", "bandwidth_bps")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LATENCY_NS_FIELD_NUMBER: _ClassVar[int]
    BANDWIDTH_BPS_FIELD_NUMBER: _ClassVar[int]
    index: int
    name: str
    latency_ns: int
    bandwidth_bps: int
    def __init__(self, index: _Optional[int] = ..., name: _Optional[str] = ..., latency_ns: _Optional[int] = ..., bandwidth_bps: _Optional[int] = ...) -> None: ...
