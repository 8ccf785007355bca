"""The utility of a tuple: a tree of `protos/expressions.py` from a plan, made into a function of the payload.

The tree comes over the wire, so all of it is checked. The function is total: for any payload it gives a
finite number, or LEAST where there is none (a missing field, a text in a sum, NaN, infinity, a division by zero).
Looked up are the keys of mappings and the fields of protobuf messages, by the names in the tree; nothing is called.
It has a memory where it asks `since`: when tuples about the same thing were let in.

An evaluation is closures inside closures. What is needed of a part (a number, a condition, anything that can be
compared) is known when it is made, so a sum never meets a text, and a wrong constant is refused at once.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from node_agent.problems import UnusableValueError
from protos.expressions import (
    ARITHMETIC,
    CHOICE,
    COUNTS,
    DEEPEST,
    EQUALITY,
    FIELD,
    LEAST_WHOLE,
    LOGIC,
    LONGEST_JSON,
    LONGEST_PATH,
    LONGEST_SINCE_S,
    LONGEST_TEXT,
    MOST_KEYS,
    MOST_NODES,
    MOST_WHOLE,
    NAME,
    SINCE,
)

LEAST = float("-inf")  # of a tuple that cannot be judged; no other value is as little
KNOWN_CLASSES = 64  # message classes remembered at once

Checked = Any  # of a payload: what is needed of a part is looked at when it runs, and arithmetic needs no other type
Part = Callable[[object], Checked]
_NAME = re.compile(NAME)
_NUMBER, _CONDITION, _ANY = "number", "condition", "any"  # what is needed of a part


class _UnjudgedError(Exception):
    """This payload has no value."""


class Utility:
    """What each tuple of a source is worth: finite, or LEAST."""

    __slots__ = ("_let_in", "_part")

    def __init__(self, part: Part, let_in: "list[_LetIn]") -> None:
        self._part, self._let_in = part, let_in

    def __call__(self, payload: object, at_ns: int = 0) -> float:
        """Of a tuple that comes at an instant."""
        for each in self._let_in:
            each.now_ns = at_ns
        try:
            return float(self._part(payload))
        except Exception:  # a payload may be of any class, and it has no right to stop a node
            return LEAST

    def let_in(self, payload: object) -> None:
        """The tuple that was asked about last goes on."""
        for each in self._let_in:
            each.note(payload)


def read(text: str) -> Utility:
    """The value function of a tree written as JSON. Raises ValueError."""
    if len(text) > LONGEST_JSON:
        raise UnusableValueError("too_large", f"a value expression of {len(text)} characters; at most {LONGEST_JSON}")
    try:
        tree = json.loads(text)
    except RecursionError as error:
        raise UnusableValueError("too_deep", "a value expression that is nested too deep") from error
    return compiled(tree)


def compiled(tree: object) -> Utility:
    """The value function of a tree that nobody has checked. Raises ValueError."""
    made = _Tree()
    return Utility(made.part(tree, _NUMBER, DEEPEST), made.let_in)


class _Tree:
    """A tree on its way to a function: counts what it has seen."""

    def __init__(self) -> None:
        self._nodes = 0
        self.let_in: list[_LetIn] = []

    def part(self, tree: object, needed: str, depth: int) -> Part:
        """A function of the payload that gives what is needed, or raises."""
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise UnusableValueError("too_large", f"a value expression of more than {MOST_NODES} parts")
        if depth < 1:
            raise UnusableValueError("too_deep", f"a value expression deeper than {DEEPEST}")
        if not isinstance(tree, list):
            return _constant(tree, needed)
        if not tree or not isinstance(tree[0], str):
            raise UnusableValueError("no_operator", "a part of a value expression without an operation")
        operation, arguments = tree[0], tree[1:]
        if operation == FIELD:
            return _field(arguments, needed)
        if operation not in COUNTS:
            raise UnusableValueError(
                "unknown_operator",
                f"a value expression with the unknown operation {operation[:40]!r}",
                subject=operation[:40],
            )
        least, most = COUNTS[operation]
        if not least <= len(arguments) <= most:
            raise UnusableValueError(
                "wrong_number_of_arguments",
                f"{operation!r} with {len(arguments)} arguments in a value expression",
                subject=operation,
            )
        if needed == _CONDITION and (operation in ARITHMETIC or operation == SINCE):
            raise UnusableValueError(
                "other_type", f"{operation!r} where a value expression needs a condition", subject=operation
            )
        return self._operation(operation, arguments, needed, depth - 1)

    def _operation(self, operation: str, arguments: list[object], needed: str, depth: int) -> Part:
        if operation == CHOICE:
            condition = self.part(arguments[0], _CONDITION, depth)
            return _conditional(condition, *(self.part(one, needed, depth) for one in arguments[1:]))
        inner = _NUMBER if operation in ARITHMETIC else _CONDITION if operation in LOGIC else _ANY
        parts = [self.part(one, inner, depth) for one in arguments]
        if operation in ARITHMETIC:
            return _arithmetic(operation, parts)
        if operation in LOGIC:
            return _logic(operation, parts)
        if operation == SINCE:
            self.let_in.append(_LetIn(parts))
            return self.let_in[-1].since_s
        return _equality(operation, *parts) if operation in EQUALITY else _order(operation, *parts)


class _LetIn:
    """When tuples were let in last, by what they are about. now_ns: when the tuple at hand comes."""

    __slots__ = ("_at_ns", "_parts", "now_ns")

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts
        self._at_ns: OrderedDict[tuple[object, ...], int] = OrderedDict()
        self.now_ns = 0

    def since_s(self, payload: object) -> float:
        """How long ago that is for what the payload is about."""
        at_ns = self._at_ns.get(self._key(payload))
        return LONGEST_SINCE_S if at_ns is None else min(LONGEST_SINCE_S, max(0, self.now_ns - at_ns) / 1e9)

    def note(self, payload: object) -> None:
        """It is let in."""
        try:
            key = self._key(payload)
        except Exception:  # of any class, as where its value is asked
            return
        self._at_ns[key] = self.now_ns
        self._at_ns.move_to_end(key)
        if len(self._at_ns) > MOST_KEYS:
            self._at_ns.popitem(last=False)

    def _key(self, payload: object) -> tuple[object, ...]:
        key = tuple([part(payload) for part in self._parts])
        if any(each.__class__ is str and len(str(each)) > LONGEST_TEXT for each in key):
            raise _UnjudgedError
        return key


def _constant(value: object, needed: str) -> Part:
    kind = value.__class__
    if kind is str:
        fits = needed == _ANY and len(str(value)) <= LONGEST_TEXT
    elif kind is bool:
        fits = True
    elif isinstance(value, (int, float)):
        fits = needed != _CONDITION and _finite(value)
    else:
        fits = value is None and needed == _ANY
    if not fits:
        raise UnusableValueError(
            "other_type", f"a {kind.__name__} where a value expression needs a {needed}, or one that is too large"
        )

    def constant(payload: object) -> Checked:
        return value

    return constant


def _finite(value: int | float) -> bool:
    return LEAST_WHOLE <= value <= MOST_WHOLE if isinstance(value, int) else value - value == 0


def _field(path: list[object], needed: str) -> Part:
    if len(path) > LONGEST_PATH:
        raise UnusableValueError(
            "too_large", f"a field of {len(path)} names in a value expression; at most {LONGEST_PATH}"
        )
    names: list[str] = []
    for name in path:
        if not isinstance(name, str) or len(name) > LONGEST_TEXT or not _NAME.fullmatch(name):
            raise UnusableValueError(
                "bad_name", f"{str(name)[:40]!r} is no name of a field of a value expression", subject=str(name)[:40]
            )
        names.append(name)
    return _checked(_field_of_payload(names), needed)


def _field_of_payload(names: list[str]) -> Part:
    """The value of a field as it stands in the payload."""
    fields: dict[type, frozenset[str]] = {}

    def of_message(message: Checked, name: str) -> Checked:
        kind = message.__class__
        known = fields.get(kind)
        if known is None:
            if len(fields) >= KNOWN_CLASSES:
                fields.clear()
            known = fields[kind] = frozenset(kind.DESCRIPTOR.fields_by_name)
        if name in known:
            return getattr(message, name)
        raise _UnjudgedError

    if len(names) == 1:
        (only,) = names

        def field(payload: object) -> Checked:
            return payload[only] if payload.__class__ is dict else of_message(payload, only)

        return field

    def path(payload: object) -> Checked:
        for name in names:
            payload = payload[name] if payload.__class__ is dict else of_message(payload, name)
        return payload

    return path


def _checked(field: Part, needed: str) -> Part:
    """What is needed, or an exception: numbers are finite and within 64 bits, so no sum of them grows without end."""

    def number(payload: object) -> Checked:
        value = field(payload)
        kind = value.__class__
        if (
            (kind is float and value - value == 0)
            or kind is bool
            or (kind is int and LEAST_WHOLE <= value <= MOST_WHOLE)
        ):
            return value
        raise _UnjudgedError

    def condition(payload: object) -> Checked:
        value = field(payload)
        if value.__class__ is bool:
            return value
        raise _UnjudgedError

    def anything(payload: object) -> Checked:
        value = field(payload)
        kind = value.__class__
        if kind is str or value is None or kind is bool:
            return value
        if (kind is float and value - value == 0) or (kind is int and LEAST_WHOLE <= value <= MOST_WHOLE):
            return value
        raise _UnjudgedError

    return {_NUMBER: number, _CONDITION: condition, _ANY: anything}[needed]


def _conditional(condition: Part, one: Part, other: Part) -> Part:
    return lambda payload: one(payload) if condition(payload) else other(payload)


def _arithmetic(operation: str, parts: list[Part]) -> Part:
    first, *rest = parts
    second = rest[0] if rest else first
    if operation == "+" and len(parts) > 2:
        return lambda payload: _bounded(sum([part(payload) for part in parts]))
    if operation == "*" and len(parts) > 2:

        def product(payload: object) -> Checked:
            found = first(payload)
            for part in rest:
                found *= part(payload)
            return _bounded(found)

        return product
    return {
        "+": lambda payload: _bounded(first(payload) + second(payload)),
        "*": lambda payload: _bounded(first(payload) * second(payload)),
        "-": lambda payload: _bounded(first(payload) - second(payload)),
        "/": lambda payload: _bounded(first(payload) / second(payload)),
        "neg": lambda payload: -first(payload),
        "abs": lambda payload: abs(first(payload)),
        "min": lambda payload: min([part(payload) for part in parts]),
        "max": lambda payload: max([part(payload) for part in parts]),
    }[operation]


def _bounded(value: Checked) -> Checked:
    """No infinity goes on: 1 / infinity would be a number again."""
    if value - value == 0:
        return value
    raise _UnjudgedError


def _logic(operation: str, parts: list[Part]) -> Part:
    first = parts[0]
    if operation == "not":
        return lambda payload: not first(payload)
    stop = operation == "or"

    def row(payload: object) -> Checked:
        for part in parts:
            if part(payload) is stop:
                return stop
        return not stop

    return row


def _equality(operation: str, one: Part, other: Part) -> Part:
    if operation == "==":
        return lambda payload: one(payload) == other(payload)
    return lambda payload: one(payload) != other(payload)


def _order(operation: str, one: Part, other: Part) -> Part:
    """Two numbers or two texts; anything else raises, as Python has it."""
    return {
        "<": lambda payload: one(payload) < other(payload),
        "<=": lambda payload: one(payload) <= other(payload),
        ">": lambda payload: one(payload) > other(payload),
        ">=": lambda payload: one(payload) >= other(payload),
    }[operation]


__all__ = ["LEAST", "Utility", "compiled", "read"]
