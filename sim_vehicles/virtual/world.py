"""What is around the cluster: where tuples come from and where results go.

A closed loop (a vehicle simulation that brakes when it is warned) implements `World`; without one, `Stub` offers tiny
payloads of the declared types.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from node_agent.codecs import Codecs, UnknownCodecError
from sim_vehicles.errors import BadInputError
from sim_vehicles.virtual.scenario import PlanFile


class Offer(NamedTuple):
    """One tuple for admission; age_ns: how long before it became true, sensed or sent (its origin)."""

    payload: Any
    age_ns: int = 0


class Delivery(NamedTuple):
    """A result. at_ns counts from the trial's start; latency_ns from the origin of the tuple it stems from."""

    output: str
    at_ns: int
    latency_ns: int
    source: str
    seq: int
    ordinal: int
    payload: Any


class World(Protocol):
    """Asked and told in the order of virtual time, so it can advance a simulation of its own to `at_ns` each time."""

    def begin(self, trial: int) -> None:
        """A new trial starts at 0."""

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        """The tuple that this source admits now; seq counts from 1. None: there is none this time."""

    def deliver(self, delivery: Delivery) -> None:
        """A result is there."""


class Stub:
    """Tiny payloads of the declared types, all of a source of one age."""

    def __init__(self, plan: PlanFile, ages_ns: Mapping[str, int], codecs: Codecs) -> None:
        self._ages_ns = {source.name: ages_ns.get(source.name, 0) for source in plan.sources}
        self._empty: dict[str, Any] = {}
        for source in plan.sources:
            try:
                codec = codecs.get(source.codec)
            except UnknownCodecError as error:
                raise BadInputError(f"source {source.name}: {error}") from None
            if codec.name != "json":
                self._empty[source.name] = codec.from_json({})

    def begin(self, trial: int) -> None:
        """Nothing changes from trial to trial."""

    def offer(self, source: str, seq: int, at_ns: int) -> Offer:
        """json: {"seq", "source"}; a protobuf message: an empty one."""
        empty = self._empty.get(source)
        return Offer({"seq": seq, "source": source} if empty is None else empty, self._ages_ns[source])

    def deliver(self, delivery: Delivery) -> None:
        """Nobody listens."""
