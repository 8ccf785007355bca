"""Layout of a record's 64 bytes as named fields: the machinery behind the table in records.py. Standard library only.

A record is a tuple of RECORD's twelve values, and its class says what they are called. A field is a whole value or some
of its bits. `Ran.start_ns` is the field, `ran.start_ns` its value in a record; columns, arrays and pages that are made
from the table ask the field where it lies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, cast, overload

RECORD = Struct("<BBHHHQqqqqqQ")
RECORD_BYTES = RECORD.size  # 64
FLAG = 0x80
PLAN_EPOCH_MASK = 0x7F
WORD_BITS = 64
KIND_LIMIT = 256


RecordFault = Literal[
    "out_of_range", "part_of_a_record", "name_too_long", "no_header", "not_a_segment", "other_version", "damaged"
]


class RecordError(ValueError):
    """A record or the head of a trace segment that cannot be written, or is none."""

    def __init__(self, code: RecordFault, text: str) -> None:
        self.code = code
        super().__init__(text)


class _Columns(NamedTuple):
    """RECORD's values, in order."""

    kind: int
    flags: int
    ref: int
    source: int
    epoch: int
    seq: int
    w0: int
    w1: int
    w2: int
    w3: int
    w4: int
    last: int


COLUMNS = _Columns._fields
_FORMATS = dict(zip(COLUMNS, RECORD.format.lstrip("<"), strict=True))
_BITS = {"B": 8, "H": 16, "q": WORD_BITS, "Q": WORD_BITS}


class Field(property):
    """Some bits of a column. about: what they are; names: what their values are called, by number.

    In a signed column, a field of all its bits is signed, and one of some of them is not. A field of the last word is
    signed where it says so.
    """

    def __init__(
        self, column: str, about: str = "", names: tuple[str, ...] = (), *, shift: int = 0, bits: int | None = None,
        signed: bool | None = None,
    ) -> None:  # fmt: skip
        letter = _FORMATS[column]
        self.name, self.column, self.about, self.names = column, column, about, names
        self.place, self.shift = COLUMNS.index(column), shift
        self.bits = _BITS[letter] if bits is None else bits
        self.whole = self.bits == _BITS[letter]
        self.signed = (letter == "q" and self.whole) if signed is None else signed
        self._stored_signed = letter == "q"
        super().__init__(self._getter())

    if TYPE_CHECKING:

        @overload
        def __get__(self, record: None, owner: type, /) -> Self: ...
        @overload
        def __get__(self, record: object, owner: type | None = None, /) -> int: ...
        def __get__(self, record: object, owner: type | None = None, /) -> int | Self: ...

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def mask(self) -> int:
        """All of its bits set, in the lowest place."""
        return (1 << self.bits) - 1

    def text(self, value: int) -> str:
        """What a value is called; one without a name by its number."""
        return self.names[value] if 0 < value < len(self.names) else f"{self.name} {value}"

    def put(self, values: list[int], value: int) -> None:
        """Set it in a record's values. Raises ValueError where a part of a word has no room for the value; a whole word
        is looked at when it is packed."""
        if self.whole:
            values[self.place] = value & self.mask if self.signed and not self._stored_signed else value
            return
        if not 0 <= value <= self.mask:
            raise RecordError("out_of_range", f"{self.name} {value} does not fit in {self.bits} bits")
        word = values[self.place] & ~(self.mask << self.shift) | value << self.shift
        values[self.place] = _signed(word & (1 << WORD_BITS) - 1) if self._stored_signed else word

    def _getter(self) -> Callable[[tuple[int, ...]], int]:
        place, shift, mask = self.place, self.shift, self.mask
        if not self.whole:
            return lambda record: record[place] >> shift & mask
        if self.signed and not self._stored_signed:
            return lambda record: _signed(record[place])
        return itemgetter(place)


class Flag(Field):
    """The kind's own bit of the flags; true or false."""

    def __init__(self, about: str) -> None:
        super().__init__("flags", about, shift=7, bits=1)

    if TYPE_CHECKING:

        @overload
        def __get__(self, record: None, owner: type, /) -> Self: ...
        @overload
        def __get__(self, record: object, owner: type | None = None, /) -> bool: ...
        def __get__(self, record: object, owner: type | None = None, /) -> bool | Self: ...

    def _getter(self) -> Callable[[tuple[int, ...]], int]:
        return lambda record: record[1] >= FLAG


def word(number: int, about: str = "", names: tuple[str, ...] = ()) -> Field:
    """One of the five words, of 64 bits."""
    return Field(f"w{number}", about, names)


def head(column: str, about: str = "", names: tuple[str, ...] = ()) -> Field:
    """Another name for what stands before the words, where the kind has something else there."""
    return Field(column, about, names)


def last(about: str = "", *, signed: bool = False) -> Field:
    """The last word."""
    return Field("last", about, signed=signed)


def part(of: Field, shift: int, bits: int, about: str = "") -> Field:
    """Some bits of a word that holds two values."""
    return Field(of.column, about, shift=shift, bits=bits)


class Record(_Columns):
    """One fact. Classes of the table say what its words are; this one is of a kind that nobody knows.

    kind: its number; flags: the plan's epoch modulo 128, and FLAG; ref: whom it is about, by kind; source, epoch, seq:
    the tuple's lineage.
    """

    __slots__ = ()
    number: ClassVar[int] = 0
    name: ClassVar[str] = "-"
    fields: ClassVar[Mapping[str, Field]] = {}

    plan_epoch_low = Field("flags", "the plan epoch modulo 128; 0: no plan", bits=7)
    at_ns = word(0, "when")

    def __init_subclass__(cls, kind: int) -> None:
        cls.number, cls.name = kind, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).upper()
        cls.fields = {name: each for name, each in vars(cls).items() if isinstance(each, Field)}
        CLASSES[kind] = cls

    @classmethod
    def make(cls, **values: int) -> Self:
        """A record of this kind, by the names of its fields; the others are 0. Raises ValueError and KeyError."""
        empty = [0] * len(COLUMNS)
        empty[0] = cls.number
        return tuple.__new__(cls, _filled(cls, empty, values))

    @classmethod
    def pack(cls, **values: int) -> bytes:
        """Its bytes: for where speed does not matter."""
        return cls.make(**values).packed()

    def packed(self) -> bytes:
        """Its 64 bytes."""
        return RECORD.pack(*self)

    def __repr__(self) -> str:
        names = dict.fromkeys(("flags", "ref", "source", "epoch", "seq", "at_ns", *self.fields))
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in names)})"

    def changed(self, **values: int) -> Self:
        """The same with other values of some fields."""
        return tuple.__new__(type(self), _filled(type(self), list(self), values))


def unpack_records(data: bytes | memoryview) -> Iterator[Record]:
    """The records in `data` (no header), each of its kind's class. Raises ValueError unless it is a whole number of
    records."""
    if len(data) % RECORD_BYTES:
        raise RecordError("part_of_a_record", f"trace records are {RECORD_BYTES} bytes each, found {len(data)} bytes")
    kinds = map(CLASSES.__getitem__, data[::RECORD_BYTES])
    return cast(Iterator[Record], map(tuple.__new__, kinds, RECORD.iter_unpack(data)))


def unpack_record(data: bytes | memoryview, at: int = 0) -> Record:
    """The record that begins there."""
    return next(unpack_records(data[at : at + RECORD_BYTES]))


CLASSES: list[type[Record]] = [Record] * KIND_LIMIT  # by the number of the kind
_HEAD = {name: Field(name) for name in COLUMNS[1:6]} | {
    name: each for name, each in vars(Record).items() if isinstance(each, Field)
}


def _filled(kind: type[Record], found: list[int], values: Mapping[str, int]) -> list[int]:
    for name, value in values.items():
        (kind.fields.get(name) or _HEAD[name]).put(found, value)
    return found


def _signed(word: int) -> int:
    return (word ^ 1 << WORD_BITS - 1) - (1 << WORD_BITS - 1)
