"""Tuples that were given in one call, and their payloads with their origins."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from node_agent.client.origins import Origin, origins
from node_agent.client.payloads import payloads
from node_agent.operators.codecs import Codec


class Burst(NamedTuple):
    """What `send_many` takes, at the instant of its call."""

    at_ns: int
    values: Any
    age_ms: Any = 0.0
    origin_ns: Any = None


class Encoded(NamedTuple):
    """A burst as it goes to the link."""

    payloads: Sequence[bytes]
    origins: Iterable[Origin]


def encoded(burst: Burst, codec: Codec) -> Encoded | Exception:
    """The burst, or why none of it can be sent: its values may come from a generator, which may raise anything, also
    what would end the program or its task."""
    try:
        found = payloads(burst.values, codec)
        return Encoded(found, origins(burst.at_ns, len(found), burst.age_ms, burst.origin_ns))
    except BaseException as error:
        return answerable(error)


def answerable(error: BaseException) -> Exception:
    """The error as a future can have it: what ends programs, tasks or iterations stands behind a RuntimeError."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    found = RuntimeError(f"{type(error).__name__} was raised while a burst was sent: {error}")
    found.__cause__ = error
    return found
