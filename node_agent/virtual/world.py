"""World around the cluster: where tuples come from and where results go.

A closed loop (a simulation of the surroundings that acts on results) implements `World`, and may say itself what is
admitted when; without one, `Stub` offers the tuples of files, or tiny payloads of the declared types, at the instants
of the plan's arrivals.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from node_agent.operators.codecs import Codec, CodecError, Codecs, UnknownCodecError
from node_agent.virtual.arrivals import WithSources
from node_agent.virtual.errors import bad_input


class Offer(NamedTuple):
    """One tuple for admission; age_ns: how long before it became true, sensed or sent (its origin)."""

    payload: Any
    age_ns: int = 0


class Admission(NamedTuple):
    """Tuples that a source admits at one instant, in order. at_ns counts from the trial's start; it may be negative."""

    at_ns: int
    source: str
    offers: tuple[Offer, ...]


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

    def begin(self, trial: int) -> Sequence[Admission] | None:
        """A new trial starts at 0. Returns everything that is to be admitted in it; what has one instant, in that
        order. None: the plan's own arrivals, asked for tuple by tuple with `offer`."""

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        """The tuple that this source admits now; seq counts from 1. None: there is none this time."""

    def deliver(self, delivery: Delivery) -> Sequence[Admission] | None:
        """A result is there. Returns what is to be admitted after this instant, instead of everything that was planned
        for then; None: nothing changes. What is planned for this very instant is admitted in any case."""


class Stub:
    """What the sources' files hold, over and over; else tiny payloads of the declared types. One age per source."""

    def __init__(
        self, plan: WithSources, ages_ns: Mapping[str, int], codecs: Codecs, files: Mapping[str, str] | None = None
    ) -> None:
        """files: per source, a file as `read_tuples` reads it. Raises BadInputError."""
        self._ages_ns = {source.name: ages_ns.get(source.name, 0) for source in plan.sources}
        self._given: dict[str, Sequence[Any]] = {}
        for source in plan.sources:
            try:
                codec = codecs.get(source.codec)
            except UnknownCodecError as error:
                raise bad_input(error.code, f"source {source.name}: {error}", subject=source.name) from None
            if files and source.name in files:
                self._given[source.name] = read_tuples(Path(files[source.name]), codec)
            elif codec.name != "json":
                self._given[source.name] = [codec.decode(b"")]  # a message of defaults

    def begin(self, trial: int) -> None:
        """Nothing changes from trial to trial."""

    def offer(self, source: str, seq: int, at_ns: int) -> Offer:
        """Of a file, line seq, from the first again after the last. Else json: {"seq", "source"}; a protobuf message:
        an empty one."""
        given = self._given.get(source)
        payload = copy.deepcopy(given[(seq - 1) % len(given)]) if given else {"seq": seq, "source": source}
        return Offer(payload, self._ages_ns[source])

    def deliver(self, delivery: Delivery) -> None:
        """Nobody listens."""


def read_tuples(path: Path, codec: Codec) -> list[Any]:
    """A file with one tuple in JSON per line, as values of `codec`; empty lines are skipped. Raises BadInputError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        text = f"--tuples {path}: cannot be read ({why}); give a file with one tuple in JSON per line"
        raise bad_input("unreadable", text, subject="--tuples") from None
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(codec.from_json(json.loads(line)))
            except (ValueError, RecursionError, CodecError) as error:
                raise bad_input(
                    "not_a_tuple",
                    f"--tuples {path}:{number}: not a tuple of {codec.name}: {error}",
                    "write one tuple in JSON per line, as the source's type has it",
                    subject="--tuples",
                ) from None
    if not found:
        raise bad_input(
            "empty_file", f"--tuples {path}: is empty", "write one tuple in JSON per line", subject="--tuples"
        )
    return found
