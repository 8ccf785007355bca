"""A hop is a hop: the result of an operator is what its stream's type can carry, whether or not it leaves the node.

A value that is plain already goes on as the object that it is. Another one becomes what it would be on another node, or
is refused as it would be there, before anything reads it. In a registry that checks, all are encoded and decoded.
"""

from collections.abc import Callable
from time import thread_time_ns
from typing import Any

from node_agent.host.clock import now_ns
from node_agent.operators.api import Many
from node_agent.operators.codecs import Codec, CodecError
from node_agent.problems import ProblemError

Call = Callable[..., Any]


class UnencodableError(ProblemError):
    """An operator gave what its stream cannot carry; the message is for its author."""


class Checking:
    """What checks have taken since it was looked at: it is none of the operators' cost. cpu_ns: of this thread."""

    __slots__ = ("cpu_ns", "elapsed_ns")

    def __init__(self) -> None:
        self.cpu_ns = self.elapsed_ns = 0

    def timed(self, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """That call, with its time taken down."""

        def timing(value: Any) -> Any:
            began_ns, cpu_ns = now_ns(), thread_time_ns()
            try:
                return call(value)
            finally:
                self.cpu_ns += thread_time_ns() - cpu_ns
                self.elapsed_ns += now_ns() - began_ns

        return timing


def fitting(name: str, call: Call, plain: bool, codec: Codec, checking: Checking | None = None) -> Call:
    """The call of an operator, which then gives what the next operator gets; `plain` as of signature.Bound. checking:
    by encoding and decoding each result. Raises UnencodableError where a result cannot be carried."""
    fit = codec.fit if checking is None else checking.timed(lambda value: codec.decode(codec.encode(value)))
    whole = checking is not None

    def result(value: Any) -> Any:
        try:
            if value.__class__ is Many:
                return Many(*(each if each is None else fit(each) for each in value.values))
            return fit(value)
        except CodecError as error:
            text = f"{name} gave what a stream of {codec.name} cannot carry: {error}"
            raise UnencodableError(error.code, text, subject=name) from None

    def fitted(payload: Any) -> Any:
        value = call(payload)
        if value is None or (value is payload and not whole):
            return value
        return result(value)

    def fitted_beside(inputs: tuple[Any, ...], sides: Any, at: Any) -> Any:
        value = call(inputs, sides, at)
        return value if value is None else result(value)

    return fitted if plain else fitted_beside


__all__ = ["Checking", "UnencodableError", "fitting"]
