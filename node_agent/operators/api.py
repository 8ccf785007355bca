"""How the author of an operator declares it; `node_agent.sdk` is the face of this and of the client.

Importing it has no side effect. `node_agent/OPERATORS.md` is the manual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

DECLARATION = "__shimekiri_operator__"  # the attribute that marks a class or function as an operator

Implementation = TypeVar("Implementation", bound=Callable[..., Any])


class Declaration(NamedTuple):
    """What `@operator` says about a class or function. Types are codec names; see OPERATORS.md."""

    name: str
    version: str
    inputs: Mapping[str, str]
    side: Mapping[str, str]
    output: str
    variadic: bool = False  # any number of inputs, all of the type given for "*"
    union: bool = False  # every input triggers, instead of a join of them all
    aggregate: bool = False  # of the tuples of a window, instead of one tuple
    open: bool = False  # parameters have any names, and the implementation checks them


class CodecDeclaration(NamedTuple):
    """What `codec` says: a stream type and the protobuf message class that carries it."""

    name: str
    message: type[Any]


class Many:
    """Several results of one input: `return Many(x, y)`. At most 255; `Many()` is the same as None."""

    __slots__ = ("values",)

    def __init__(self, *values: Any) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"Many{self.values!r}"


class At:
    """When an operator runs. An operator reads no clock of its own, so that it means the same in virtual time.

    now_ns: start of the task instance. origin_ns: (lo, hi), the interval that holds the origin of the input (of a
    join: the oldest). deadline_ns: the instant by which the earliest result that it leads to is due. All in
    nanoseconds of the node's monotonic clock.
    """

    __slots__ = ("deadline_ns", "now_ns", "origin_ns")

    def __init__(self, now_ns: int, origin_ns: tuple[int, int], deadline_ns: int) -> None:
        self.now_ns = now_ns
        self.origin_ns = origin_ns
        self.deadline_ns = deadline_ns

    def __repr__(self) -> str:
        return f"At(now_ns={self.now_ns}, origin_ns={self.origin_ns}, deadline_ns={self.deadline_ns})"


def operator(
    name: str,
    version: str = "1",
    inputs: Mapping[str, str] | None = None,
    side: Mapping[str, str] | None = None,
    output: str = "json",
) -> Callable[[Implementation], Implementation]:
    """Declare a class or a plain function as the operator `name`.

    inputs: {port: type} in the order of the positional arguments; more than one: a join by lineage. side: {port: type},
    keyword arguments, None before their first value. Types: "json", the name of a codec, for inputs "any", for the
    output "same" (the type of the first input). Parameters (`with:` of a query) are those of `__init__`, of a function
    its further keyword-only arguments. Raises ValueError on a declaration that cannot be meant.
    """
    inputs = {"value": "json"} if inputs is None else dict(inputs)
    declaration = Declaration(name, version, inputs, dict(side or {}), output)
    _check(declaration)

    def mark(implementation: Implementation) -> Implementation:
        if not callable(implementation):
            raise TypeError(f"operator {name!r} must be a class or a function, not {type(implementation).__name__}")
        setattr(implementation, DECLARATION, declaration)
        return implementation

    return mark


def aggregate(
    name: str, version: str = "1", inputs: Mapping[str, str] | None = None, output: str = "json"
) -> Callable[[Implementation], Implementation]:
    """Declare a class as the aggregate `name`: what is made of the tuples of a window.

    The class has `start()` (the state of an empty window), `add(state, value)` (the state with that tuple; may be the
    same object) and `result(state)` (as JSON has it). All windows share one instance, so what belongs to a window is in
    its state. inputs: one port and its type. Parameters are those of `__init__`. Raises ValueError on a declaration
    that cannot be meant.
    """
    inputs = {"value": "json"} if inputs is None else dict(inputs)
    declaration = Declaration(name, version, inputs, {}, output, aggregate=True)
    _check(declaration)
    if len(inputs) != 1:
        raise ValueError(f"aggregate {name!r} has {len(inputs)} inputs: name one, as {{'value': 'json'}}")
    if output != "json":
        raise ValueError(f"aggregate {name!r}: the result of a window is json, not {output!r}")

    def mark(implementation: Implementation) -> Implementation:
        if not isinstance(implementation, type):
            raise TypeError(f"aggregate {name!r} must be a class with start, add and result")
        setattr(implementation, DECLARATION, declaration)
        return implementation

    return mark


def _check(declaration: Declaration) -> None:
    name, inputs, side = declaration.name, declaration.inputs, declaration.side
    if not isinstance(name, str) or not name or not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"operator name {name!r}: use identifiers with dots between them, such as my.closing")
    if not inputs:
        raise ValueError(f"operator {name!r} has no input: nothing would trigger it")
    both = sorted(set(inputs) & set(side))
    if both:
        raise ValueError(f"operator {name!r}: {both[0]!r} is both an input and a side input")
    for port in (*inputs, *side):
        if not isinstance(port, str) or not port.isidentifier() or port in {"at", "self"}:
            raise ValueError(f"operator {name!r}: {port!r} cannot be the name of a port")
    for type_ in (*inputs.values(), *side.values(), declaration.output):
        if not isinstance(type_, str) or not type_:
            raise ValueError(f"operator {name!r}: a type is 'json' or the name of a codec, not {type_!r}")
    if "same" in (*inputs.values(), *side.values()) or declaration.output == "any":
        raise ValueError(f"operator {name!r}: 'same' is for an output, 'any' for inputs")


declared_codecs: list[CodecDeclaration] = []  # in the order of declaration; a registry takes what a file adds


def codec(name: str, message: type[Any]) -> CodecDeclaration:
    """Make a protobuf message class the stream type `name`: in files given with `--operators`, and for own clients.

    Raises TypeError where it is no message class, ValueError for a name that means something else.
    """
    if not (isinstance(message, type) and hasattr(message, "DESCRIPTOR") and hasattr(message, "FromString")):
        raise TypeError(f"codec {name!r} needs a protobuf message class, not {message!r}")
    if not isinstance(name, str) or name in {"", "json", "any", "same"}:
        raise ValueError(f"{name!r} cannot be the name of a codec")
    declaration = CodecDeclaration(name, message)
    declared_codecs.append(declaration)
    return declaration
