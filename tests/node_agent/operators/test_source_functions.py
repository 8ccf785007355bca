"""What authors of sources declare, how it is found and called, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from node_agent.core.plan import Identity
from node_agent.operators.codecs import Codecs
from node_agent.operators.registry import Registry
from node_agent.operators.source_call import EndedError, Made, SourceCall
from node_agent.sdk import Aged, Tick, operator, source
from node_agent.testing import readings
from tests.node_agent.operators.test_registry import file_of, nothing
from tests.sentences import Wording

SAID = Wording("operators", "sources")
TICK = Tick(7, 70)
JSON = Codecs(discover=nothing).get("json")


@source("t.number")
def number(*, tick: Tick, times: int = 1) -> int:
    return tick.number * times


@source("t.plain", version="3")
class Plain:
    def __init__(self, value: Any = 1) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


@source("t.count")
def counting(start: int = 0) -> Iterator[int]:
    yield from range(start, start + 2)


@source("t.each")
class Each:
    def __init__(self, values: Any) -> None:
        self.values = values

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)


@pytest.fixture
def registry() -> Registry:
    return Registry(discover=nothing, operators=(number, Plain, counting, Each))


def call(registry: Registry, run: str, with_json: str = "{}") -> SourceCall:
    return registry.source_call(run, with_json, JSON)


def test_functions_and_objects_are_called_and_told_the_tick_if_they_ask(registry: Registry) -> None:
    assert call(registry, "t.number")(TICK) == Made(7, 1, None)
    assert call(registry, "t.number", '{"times": 3}')(TICK) == Made(21, 2, None)
    assert call(registry, "t.plain", '{"value": {"a": [1.5]}}')(TICK) == Made({"a": [1.5]}, 11, None)
    assert call(registry, "t.plain", '{"value": null}')(TICK) is None
    assert not call(registry, "t.plain").iterates


def test_what_is_given_is_a_copy_as_its_stream_carries_it(registry: Registry) -> None:
    frame = {"pixels": (1, 2)}

    @source("t.same")
    def same() -> Any:
        return frame

    made = call(Registry(discover=nothing, operators=(same,)), "t.same")(TICK)
    frame["pixels"] = (3, 4)
    assert made is not None and made.payload == {"pixels": [1, 2]}


def test_iterators_begin_at_the_first_call_and_end(registry: Registry) -> None:
    for run, given, values in (("t.count", '{"start": 4}', [4, 5]), ("t.each", '{"values": ["a", null]}', ["a", None])):
        following = call(registry, run, given)
        assert following.iterates
        found = [following(TICK) for _ in range(2)]
        assert [None if made is None else made.payload for made in found] == values
        with pytest.raises(EndedError):
            following(TICK)


@pytest.mark.parametrize("age_ms", [-0.001, float("nan"), float("inf"), "3", None, True, 86_400_001])
def test_an_age_that_is_none_is_refused(age_ms: Any) -> None:
    @source("t.aged")
    def aged() -> Any:
        return Aged(1, age_ms)

    with SAID.refuses("bad_age t.aged", worded=False):
        call(Registry(discover=nothing, operators=(aged,)), "t.aged")(TICK)


def test_an_age_and_a_value_that_no_stream_carries(registry: Registry) -> None:
    values = iter([Aged("v", 1.5), Aged(None, 1), object()])

    @source("t.next")
    def following() -> Any:
        return next(values)

    made = call(Registry(discover=nothing, operators=(following,)), "t.next")
    assert made(TICK) == Made("v", 3, 1_500_000)
    assert made(TICK) is None
    with SAID.refuses("not_json t.next", worded=False):
        made(TICK)


def test_a_list_of_what_is_installed_says_which_is_called_and_which_iterated(registry: Registry) -> None:
    described = registry.describe()["operators"]
    kinds = {name: described[name]["kind"] for name in ("t.number", "t.plain", "t.count", "t.each")}
    assert kinds == {"t.number": "source", "t.plain": "source", "t.count": "iterator", "t.each": "iterator"}
    assert described["t.plain"]["version"] == "3" and described["t.plain"]["inputs"] == {}
    assert described["t.number"]["with"] == {"times": {"type": "integer", "default": 1, "required": False}}
    assert list(described["t.each"]["with"]) == ["values"] and described["t.each"]["with"]["values"]["required"]


def test_a_source_of_other_code_is_refused_as_an_operator_is(registry: Registry) -> None:
    own = registry.identity("t.plain")
    registry.check(own)
    with SAID.refuses("other_code t.plain", worded=False):
        registry.check(Identity("t.plain", "3", "0" * 64))


def test_what_is_no_source_and_what_is_no_operator(registry: Registry) -> None:
    with SAID.refuses("no_source_function pass"):
        call(registry, "pass")
    with SAID.refuses("source_as_operator t.plain"):
        registry.make("t.plain")
    with SAID.refuses("unknown_operator t.plane"):
        call(registry, "t.plane")
    with SAID.refuses("missing_parameter values"):
        call(registry, "t.each")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("@source('t.x')\nclass C: pass", "ops.py missing_method t.x"),
        ("@source('t.x')\nasync def f(): pass", "ops.py not_ordinary t.x"),
        ("@source('t.x')\nasync def f():\n    yield 1", "ops.py not_ordinary t.x"),
        ("@source('t.x')\nclass C:\n    def __call__(self):\n        yield 1", "ops.py not_ordinary t.x"),
        ("@source('t.x')\nclass C:\n    def __call__(self, now): pass", "ops.py unknown_argument now"),
        ("@source('t.x')\ndef f(*values): pass", "ops.py open_arguments t.x"),
        ("@source('t.x')\ndef f(*, k=object()): pass", "ops.py default_not_json k"),
        ("@source('t.x')\ndef f(): pass\n@operator('t.x')\ndef g(a): pass", "ops.py operator_twice t.x"),
        ("@source('not a name')\ndef f(): pass", "ops.py:2 raised"),
        ("@source('t.x', output='same')\ndef f(): pass", "ops.py:2 raised"),
        ("source('t.x')(3)", "ops.py:2 raised"),
    ],
)
def test_bad_declarations_are_refused_with_the_place_and_the_reason(tmp_path: Path, text: str, why: str) -> None:
    with SAID.refuses(why):
        Registry([file_of(tmp_path, text)], discover=nothing)


def test_a_constructor_that_raises_is_refused_with_what_it_raised() -> None:
    @source("t.broken")
    class Broken:
        def __init__(self) -> None:
            raise OSError("no camera here")

        def __call__(self) -> int:
            return 1

    with SAID.refuses("raised t.broken"):
        call(Registry(discover=nothing, operators=(Broken,)), "t.broken")


def test_one_function_may_be_neither_both(registry: Registry) -> None:
    def both(make: Callable[..., Any]) -> Any:
        return source("t.s")(operator("t.o")(make))

    found = Registry(discover=nothing, operators=(both(lambda: 1),))
    assert "t.s" in found.names() and "t.o" not in found.names(), "what is said last counts"


def test_a_source_is_read_in_a_test_as_an_agent_calls_it() -> None:
    assert readings(number, 3) == [1, 2, 3]
    assert readings(number, 2, with_={"times": 5}) == [5, 10]
    assert readings(Plain, 2, with_={"value": None}) == [None, None]
    assert readings(counting, 9, with_={"start": 4}) == [4, 5], "it ends"
    with SAID.refuses("unknown_parameter more"):
        readings(number, with_={"more": 1})
    with SAID.refuses("no_source_function pass"):
        readings("pass")
