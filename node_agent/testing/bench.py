"""One operator on a bench: its inputs, its side inputs and the time are what the test says."""

from collections.abc import Mapping
from typing import Any

from node_agent.operators.api import At
from node_agent.operators.signature import OperatorError
from node_agent.problems import UnusableValueError
from node_agent.runtime.executor import results
from node_agent.testing.loaded import Operator, as_json, check_type, loaded

SECOND_NS = 1_000_000_000
START_NS = 1_000 * SECOND_NS  # late enough for tuples of any sensible age

Age = int | tuple[int, int]  # ns; or (at least, at most)


class Bench:
    """An instance of an operator that is called by hand, as an agent calls it.

        bench = Bench(Closing, min_speed=1.0)
        bench.set(ego={"v": 14.0})
        assert bench({"v": 9.5}) == []

    operator: a class or function under `@operator`, or the name of an installed one. streams: the names of its input
    streams, for operators with any number of inputs: `Bench("join", "left", "right")`. with_: its parameters, as
    `with:` of a query. Raises OperatorError, as an agent refuses it.

    now_ns: the time, which stands still until `advance` is called or it is set. instance: the object that is tested.
    """

    def __init__(self, operator: Operator, /, *streams: str, **with_: Any) -> None:
        self._registry, name = loaded(operator)
        self._bound = self._registry.make(name, as_json(name, with_), streams)
        self._shape = self._registry.shape(name)
        declared = self._shape.declaration
        self._name, self._side = name, declared.side
        self._inputs = dict.fromkeys(streams, declared.inputs["*"]) if declared.variadic else dict(declared.inputs)
        self._sides: dict[str, Any] = {}
        self._seq = 0
        self.instance: Any = self._bound.instance
        self.now_ns = START_NS

    def set(self, **sides: Any) -> None:
        """The newest values of side inputs, from now on; None before the first, and again where it is set to None.

        Raises OperatorError where there is no such side input, CodecError for a value that is not of its type.
        """
        for port, value in sides.items():
            if port not in self._side:
                known = ", ".join(self._side) or "none"
                raise OperatorError(
                    "unknown_side_input", f"{self._name} has no side input {port!r}", f"it has: {known}", subject=port
                )
            if value is not None:
                check_type(self._registry, self._side[port], value, f"{self._name}: side input {port!r}")
        self._sides.update(sides)

    def advance(self, by_ns: int) -> None:
        """Time passes. Raises ValueError for less than 0: no node's clock goes back."""
        if by_ns < 0:
            raise UnusableValueError("negative", f"cannot advance by {by_ns} ns; a node's clock does not go back")
        self.now_ns += by_ns

    def __call__(self, /, *inputs: Any, age_ns: Age = 0, deadline_ns: int = SECOND_NS, **ports: Any) -> list[Any]:
        """What it gives for one tuple, now: [] for None, several for `Many`.

        inputs, ports: its inputs in their order or by name; of a union one of them. age_ns: how long ago the tuple
        became true (of a join: its oldest), an integer or (at least, at most). deadline_ns: how long after that its
        first result is due. Raises what the operator raises (in an agent that costs the tuple), ChangedError where it
        changes what others read, OperatorError for other inputs than it has, CodecError for values not of their types,
        OutputsError for more than 255 results.
        """
        given = self._given(inputs, ports)
        at = self._at(age_ns, deadline_ns)
        call = self._bound.call
        result = call(given[0]) if self._bound.plain else call(given, dict(self._sides), at)
        self._seq += 1
        found = [value for _, value in results((1, 1, self._seq, 0, *at.origin_ns), result)]
        output = self._shape.declaration.output
        type_ = next(iter(self._inputs.values())) if output == "same" else output
        for value in found:
            check_type(self._registry, type_, value, f"{self._name}: its result")
        return found

    def _at(self, age_ns: Age, deadline_ns: int) -> At:
        least_ns, most_ns = (age_ns, age_ns) if isinstance(age_ns, int) else age_ns
        if least_ns > most_ns:
            raise UnusableValueError(
                "out_of_range",
                f"an age of at least {least_ns} and at most {most_ns} ns; give the lower one first",
                subject="age_ns",
            )
        oldest_ns = self.now_ns - most_ns
        return At(self.now_ns, (oldest_ns, self.now_ns - least_ns), oldest_ns + deadline_ns)

    def _given(self, inputs: tuple[Any, ...], ports: Mapping[str, Any]) -> tuple[Any, ...]:
        """The inputs in their declared order."""
        for port in ports:
            if port in self._side:
                raise OperatorError(
                    "side_input_as_input",
                    f"{self._name}: {port!r} is a side input",
                    f"set it before: set({port}=...)",
                    subject=port,
                )
            if port not in self._inputs:
                raise OperatorError(
                    "unknown_input",
                    f"{self._name} has no input {port!r}",
                    f"it has: {', '.join(self._inputs)}",
                    subject=port,
                )
        union = self._shape.kind == "union"
        free = [port for port in self._inputs if port not in ports]
        count = 1 if union else len(self._inputs)
        if len(inputs) + len(ports) != count:
            raise OperatorError(
                "wrong_number_of_inputs",
                f"{self._name} takes {count} inputs, not {len(inputs) + len(ports)}",
                subject=self._name,
            )
        named = {**dict(zip(free, inputs, strict=False)), **ports}
        for port, value in named.items():
            check_type(self._registry, self._inputs[port], value, f"{self._name}: input {port!r}")
        return tuple(named[port] for port in self._inputs if port in named)


def run(
    operator: Operator,
    /,
    *inputs: Any,
    with_: Mapping[str, Any] | None = None,
    at_ns: int = START_NS,
    age_ns: Age = 0,
    deadline_ns: int = SECOND_NS,
    **ports: Any,
) -> list[Any]:
    """What a new instance of the operator gives for one tuple: [] for None, several for `Many`.

        assert run(Closing, car={"v": 9.5}, ego={"v": 14.0}, with_={"min_speed": 1.0}) == [{"closing": 4.5}]

    inputs, ports: its inputs in their order or by name, its side inputs by name. at_ns: the time; the rest and what is
    raised as of `Bench`, which also takes ports that are called like one of these.
    """
    registry, name = loaded(operator)
    declared = registry.shape(name).declaration
    sides = {port: value for port, value in ports.items() if port in declared.side}
    named = {port: value for port, value in ports.items() if port not in sides}
    streams = (*(f"in{number}" for number in range(1, len(inputs) + 1)), *named) if declared.variadic else ()
    bench = Bench(operator, *streams, **(with_ or {}))
    bench.now_ns = at_ns
    bench.set(**sides)
    return bench(*inputs, age_ns=age_ns, deadline_ns=deadline_ns, **named)


__all__ = ["SECOND_NS", "START_NS", "Bench", "run"]
