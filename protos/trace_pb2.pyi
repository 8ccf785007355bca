from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TraceRequest(_message.Message):
    __slots__ = ("held",)
    HELD_FIELD_NUMBER: _ClassVar[int]
    held: _containers.RepeatedCompositeFieldContainer[Position]
    def __init__(self, held: _Optional[_Iterable[_Union[Position, _Mapping]]] = ...) -> None: ...

class Position(_message.Message):
    __slots__ = ("boot", "records")
    BOOT_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    boot: int
    records: int
    def __init__(self, boot: _Optional[int] = ..., records: _Optional[int] = ...) -> None: ...

class TraceChunk(_message.Message):
    __slots__ = ("boot", "first", "header", "blocks", "ended", "written", "crashed")
    BOOT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    CRASHED_FIELD_NUMBER: _ClassVar[int]
    boot: int
    first: int
    header: bytes
    blocks: bytes
    ended: bool
    written: int
    crashed: bool
    def __init__(self, boot: _Optional[int] = ..., first: _Optional[int] = ..., header: _Optional[bytes] = ..., blocks: _Optional[bytes] = ..., ended: _Optional[bool] = ..., written: _Optional[int] = ..., crashed: _Optional[bool] = ...) -> None: ...
