from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Frame(_message.Message):
    __slots__ = ("hello", "batch", "ack", "probe", "refused", "chunk")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    PROBE_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    batch: Batch
    ack: Ack
    probe: Probe
    refused: Refused
    chunk: Chunk
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., batch: _Optional[_Union[Batch, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ..., probe: _Optional[_Union[Probe, _Mapping]] = ..., refused: _Optional[_Union[Refused, _Mapping]] = ..., chunk: _Optional[_Union[Chunk, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("version", "peer", "clock", "boot", "plan", "resume_after", "drift_ppm", "credit_bytes", "codec", "incarnation", "suspensions", "most_bytes", "peer_boot")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    BOOT_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    RESUME_AFTER_FIELD_NUMBER: _ClassVar[int]
    DRIFT_PPM_FIELD_NUMBER: _ClassVar[int]
    CREDIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    CODEC_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SUSPENSIONS_FIELD_NUMBER: _ClassVar[int]
    MOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    PEER_BOOT_FIELD_NUMBER: _ClassVar[int]
    version: int
    peer: str
    clock: str
    boot: int
    plan: int
    resume_after: int
    drift_ppm: int
    credit_bytes: int
    codec: str
    incarnation: int
    suspensions: int
    most_bytes: int
    peer_boot: int
    def __init__(self, version: _Optional[int] = ..., peer: _Optional[str] = ..., clock: _Optional[str] = ..., boot: _Optional[int] = ..., plan: _Optional[int] = ..., resume_after: _Optional[int] = ..., drift_ppm: _Optional[int] = ..., credit_bytes: _Optional[int] = ..., codec: _Optional[str] = ..., incarnation: _Optional[int] = ..., suspensions: _Optional[int] = ..., most_bytes: _Optional[int] = ..., peer_boot: _Optional[int] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("first", "sent_ns", "tuples")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SENT_NS_FIELD_NUMBER: _ClassVar[int]
    TUPLES_FIELD_NUMBER: _ClassVar[int]
    first: int
    sent_ns: int
    tuples: _containers.RepeatedCompositeFieldContainer[Tuple]
    def __init__(self, first: _Optional[int] = ..., sent_ns: _Optional[int] = ..., tuples: _Optional[_Iterable[_Union[Tuple, _Mapping]]] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("first", "sent_ns", "size", "offset", "tuple", "data")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SENT_NS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TUPLE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    first: int
    sent_ns: int
    size: int
    offset: int
    tuple: Tuple
    data: bytes
    def __init__(self, first: _Optional[int] = ..., sent_ns: _Optional[int] = ..., size: _Optional[int] = ..., offset: _Optional[int] = ..., tuple: _Optional[_Union[Tuple, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("upto", "credit_bytes", "admitted")
    UPTO_FIELD_NUMBER: _ClassVar[int]
    CREDIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    upto: int
    credit_bytes: int
    admitted: _containers.RepeatedCompositeFieldContainer[Admitted]
    def __init__(self, upto: _Optional[int] = ..., credit_bytes: _Optional[int] = ..., admitted: _Optional[_Iterable[_Union[Admitted, _Mapping]]] = ...) -> None: ...

class Admitted(_message.Message):
    __slots__ = ("link_seq", "epoch", "seq")
    LINK_SEQ_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    link_seq: int
    epoch: int
    seq: int
    def __init__(self, link_seq: _Optional[int] = ..., epoch: _Optional[int] = ..., seq: _Optional[int] = ...) -> None: ...

class Probe(_message.Message):
    __slots__ = ("id", "t0_ns", "t1_ns", "t2_ns")
    ID_FIELD_NUMBER: _ClassVar[int]
    T0_NS_FIELD_NUMBER: _ClassVar[int]
    T1_NS_FIELD_NUMBER: _ClassVar[int]
    T2_NS_FIELD_NUMBER: _ClassVar[int]
    id: int
    t0_ns: int
    t1_ns: int
    t2_ns: int
    def __init__(self, id: _Optional[int] = ..., t0_ns: _Optional[int] = ..., t1_ns: _Optional[int] = ..., t2_ns: _Optional[int] = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("why", "link_seq", "code", "count")
    WHY_FIELD_NUMBER: _ClassVar[int]
    LINK_SEQ_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    why: str
    link_seq: int
    code: str
    count: int
    def __init__(self, why: _Optional[str] = ..., link_seq: _Optional[int] = ..., code: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class Tuple(_message.Message):
    __slots__ = ("source", "epoch", "seq", "plan", "stream", "ordinal", "origin_lo_ns", "origin_hi_ns", "payload", "absent", "at_ns", "mark", "first")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_LO_NS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_HI_NS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    AT_NS_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    source: int
    epoch: int
    seq: int
    plan: int
    stream: int
    ordinal: int
    origin_lo_ns: int
    origin_hi_ns: int
    payload: bytes
    absent: bool
    at_ns: int
    mark: int
    first: int
    def __init__(self, source: _Optional[int] = ..., epoch: _Optional[int] = ..., seq: _Optional[int] = ..., plan: _Optional[int] = ..., stream: _Optional[int] = ..., ordinal: _Optional[int] = ..., origin_lo_ns: _Optional[int] = ..., origin_hi_ns: _Optional[int] = ..., payload: _Optional[bytes] = ..., absent: _Optional[bool] = ..., at_ns: _Optional[int] = ..., mark: _Optional[int] = ..., first: _Optional[int] = ...) -> None: ...
