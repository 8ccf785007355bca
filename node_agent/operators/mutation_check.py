"""Operators that change what is not theirs, found while they are tried out.

A result is one object, however many units, queries, joins and links take it: a change of it changes it for all that
come later. A copy for each of them would cost every tuple of every node (`copy.deepcopy` of an object of three fields
takes about four times as long as a scheduling decision), and JSON has no cheap form that cannot be changed. So nothing
prevents it in a running agent; a registry that checks calls every operator through here, and says which one did it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from node_agent.core.windows.accumulator import Own
from node_agent.error_codes import Code
from node_agent.operators.api import Many
from node_agent.problems import ProblemError


class ChangedError(ProblemError):
    """An operator changed a value that others have as well; the message is for its author. subject: the operator."""

    def __init__(self, code: Code, operator: str, what: str) -> None:
        text = f"{operator} changed {what}, which others read as well: give a new value instead"
        super().__init__(code, text, subject=operator)


def with_mutation_check(
    name: str, call: Callable[..., Any], plain: bool, timed: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
) -> Callable[..., Any]:
    """The call of an operator, which then raises ChangedError where it changes

    - an input or a side input, or
    - what it gave out last, which it has kept: somebody may not have read it yet.

    A value that is no JSON and no protobuf message is told by its `repr`. Costs a copy per call. timed: takes down the
    time of that.
    """
    comparable = timed(_comparable)
    given: list[Any] = []  # the results of the last call

    def checked(*arguments: Any) -> Any:
        inputs, sides = ((arguments[0],), {}) if plain else (arguments[0], arguments[1])
        values: list[tuple[Code, str, Any]] = [("input_changed", "its input", each) for each in inputs]
        values += [("side_input_changed", f"its side input {port!r}", value) for port, value in sides.items()]
        values += [("result_changed", "a result that it gave before", each) for each in given]
        before = [comparable(value) for _, _, value in values]
        result = call(*arguments)
        for (code, what, value), was in zip(values, before, strict=True):
            if comparable(value) != was:
                raise ChangedError(code, name, what)
        given[:] = _results(result)
        return result

    return checked


class MutationCheckedAggregate:
    """A user's aggregate, which then costs its window where it changes a tuple: other windows have it as well."""

    def __init__(self, name: str, own: Own) -> None:
        self._name, self._own = name, own
        self.start, self.result = own.start, own.result

    def add(self, state: Any, payload: Any) -> Any:
        """Raises ChangedError."""
        before = _comparable(payload)
        state = self._own.add(state, payload)
        if _comparable(payload) != before:
            raise ChangedError("input_changed", self._name, "its input")
        return state


def _results(result: Any) -> Sequence[Any]:
    return result.values if isinstance(result, Many) else () if result is None else (result,)


def _comparable(value: Any) -> Any:
    """Equal as long as the value is."""
    serialize = getattr(value, "SerializeToString", None)
    return serialize(deterministic=True) if serialize is not None else repr(value)
