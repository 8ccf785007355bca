"""Calls of the functions and iterators that make a source's tuples, and what of their values goes on its stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from node_agent.operators.codecs import Codec, CodecError
from node_agent.operators.hop import UnencodableError
from node_agent.operators.source_functions import Aged, Tick
from node_agent.problems import ProblemError

MOST_AGE_MS = 86_400_000.0


class AgeError(ProblemError):
    """A source gave a value of an age that is none."""


class EndedError(Exception):
    """An iterator has come to its end."""


class Made(NamedTuple):
    """One value as its stream carries it. size: encoded, in bytes. age_ns: None where it has the tick's."""

    payload: Any
    size: int
    age_ns: int | None


class SourceCall:
    """The call that makes a source's tuples, given a Tick, on a thread of its own.

    What it gives is encoded and decoded there: a function may go on changing what it has given, and another thread
    reads it. Raises EndedError at the end of an iterator, UnencodableError and AgeError for what no tuple can be made
    of, and everything that the author's code raises.
    """

    def __init__(self, name: str, call: Callable[[Tick], Any], codec: Codec, iterates: bool) -> None:
        self._name, self._call, self._codec, self.iterates = name, call, codec, iterates

    @classmethod
    def of(cls, name: str, instance: Any, takes_tick: bool, codec: Codec) -> SourceCall:
        """Of a function or an object that is called."""
        call = (lambda tick: instance(tick=tick)) if takes_tick else (lambda tick: instance())
        return cls(name, call, codec, False)

    @classmethod
    def over(cls, name: str, begin: Callable[[], Iterator[Any]], codec: Codec) -> SourceCall:
        """Of an iterator, which begins at the first call."""
        begun: list[Iterator[Any]] = []

        def following(tick: Tick) -> Any:
            if not begun:
                begun.append(begin())
            try:
                return next(begun[0])
            except StopIteration:
                raise EndedError from None

        return cls(name, following, codec, True)

    def __call__(self, tick: Tick) -> Made | None:
        """The next value; None: there is none this time."""
        value, age_ns = self._call(tick), None
        if value.__class__ is Aged:
            value, age_ns = value.value, _age_ns(self._name, value.age_ms)
        if value is None:
            return None
        try:
            data = self._codec.encode(value)
            return Made(self._codec.decode(data), len(data), age_ns)
        except CodecError as error:
            text = f"{self._name} gave what a stream of {self._codec.name} cannot carry: {error}"
            raise UnencodableError(error.code, text, subject=self._name) from None


def _age_ns(name: str, age_ms: Any) -> int:
    number = isinstance(age_ms, int | float) and not isinstance(age_ms, bool)
    if not number or not 0 <= age_ms <= MOST_AGE_MS:  # nor NaN
        ahead = ", so its value lies in the future" if number and age_ms < 0 else ""
        text = f"{name} gave the age {age_ms!r} ms{ahead}: write one from 0 to {MOST_AGE_MS:.0f}"
        raise AgeError("bad_age", text, subject=name)
    return int(age_ms * 1_000_000)


__all__ = ["AgeError", "EndedError", "Made", "SourceCall"]
