"""Batches into a real agent: by columns and by tasks of an event loop they become what tuples one by one become."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy
import pandas
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from node_agent.client import async_source
from node_agent.client.async_source import AsyncSource, Totals
from node_agent.client.client import Admitted, NoAnswerError, Outcomes, Refused, Sink, Source
from node_agent.host.clock import now_ns
from node_agent.operators.codecs import CodecError
from node_agent.problems import UnusableValueError
from protos import records
from tests.node_agent.live import ROOT, Agent, chain_plan, spooled, store

LIVE = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SHAPES = (pandas.DataFrame, pyarrow.table, lambda columns: columns)
HOUR_NS = 3600 * 10**9


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp("batches")
    store(folder / "s", chain_plan())
    with Agent(folder / "s") as running:
        yield running


def fates(outcomes: Any) -> list[str | None]:
    """Why each was refused; None: it was admitted."""
    return [each.why if isinstance(each, Refused) else None for each in outcomes]


@LIVE
@given(st.lists(st.tuples(st.integers(-9, 9), st.floats(-1, 1), st.booleans()), min_size=1, max_size=30))
def test_columns_become_what_their_rows_become(agent: Agent, rows: list[tuple[int, float, bool]]) -> None:
    """Every third field says whether the tuple comes from the future, which an agent refuses."""
    columns = {"n": [row[0] for row in rows], "x": [row[1] for row in rows]}
    origin_ns = numpy.array([now_ns() + HOUR_NS * row[2] for row in rows], "i8")
    plain = [{"n": n, "x": x} for n, x, _ in rows]
    with Sink(agent.data, "out", timeout=10) as sink, Source(agent.data, "in") as source:
        one_by_one = [source.send_at(value, (at_ns, at_ns)) for value, at_ns in zip(plain, origin_ns, strict=True)]
        expected = [sink.get(10).value for each in one_by_one if isinstance(each, Admitted)]
        for shape in SHAPES:
            outcomes = source.send_many(shape(columns), origin_ns=origin_ns)
            assert fates(outcomes) == fates(one_by_one)
            results = [sink.get(10) for each in outcomes if isinstance(each, Admitted)]
            assert [each.value for each in results] == expected
            assert [each.lineage[2] for each in results] == [seq for seq in outcomes.seq if seq]
            assert [each.origin[0] for each in results] == [
                at for at, row in zip(origin_ns, rows, strict=True) if not row[2]
            ]


def test_outcomes_are_columns(agent: Agent) -> None:
    at_ns = now_ns()
    with Source(agent.data, "in") as source:
        outcomes = source.send_many(numpy.arange(3), origin_ns=numpy.array([at_ns, at_ns + HOUR_NS, at_ns]))
    admitted, seq = numpy.asarray(outcomes.admitted), numpy.asarray(outcomes.seq)
    assert admitted.dtype == bool and admitted.tolist() == [True, False, True]
    assert seq.dtype == numpy.int64 and seq[2] == seq[0] + 1 and seq[1] == 0
    assert (numpy.asarray(outcomes.epoch) == [1, 0, 1]).all()
    assert [bool(why) for why in outcomes.why] == [False, True, False]
    assert outcomes == list(outcomes) and outcomes == tuple(outcomes) and outcomes[1:] == list(outcomes)[1:]
    assert isinstance(outcomes[1:], Outcomes) and outcomes != [] and outcomes != 3


def test_the_first_of_a_long_burst_leave_before_the_last_are_given_to_the_link(agent: Agent) -> None:
    with Sink(agent.data, "out", timeout=30) as sink, Source(agent.data, "in", timeout=60) as source:
        sender, sent = source._sender, list[int]()
        offer_many = sender.offer_many

        def noted(*given: Any) -> int:
            sent.append(sender.next_seq)
            return offer_many(*given)

        source._sender.offer_many = noted  # type: ignore[method-assign]
        outcomes = source.send_many(numpy.arange(3000))
        last = outcomes.seq[-1]
        assert any(result.lineage[2] == last for result in sink)  # so that no later test has its results
    assert all(outcomes.admitted) and len(outcomes) == 3000
    assert len(sent) >= 5 and sent[2] > sent[0] == 1


async def numbered(count: int, size: int) -> AsyncIterator[Any]:
    for first in range(0, count * size, size):
        await asyncio.sleep(0)
        yield {"n": numpy.arange(first, first + size)}


def test_batches_are_answered_in_order_and_read_in_order(agent: Agent) -> None:
    async def feed(batches: Any) -> list[Outcomes]:
        async with AsyncSource(agent.data, "in", timeout=30) as source:
            found = [each async for each in source.send_batches(batches)]
            assert source.totals == Totals(sum(map(len, found)), 0) and source.reconnects == 0
            return found

    with Sink(agent.data, "out", timeout=10) as sink:
        for batches in (numbered(20, 50), [{"n": range(n, n + 50)} for n in range(0, 1000, 50)]):
            found = asyncio.run(feed(batches))
            assert [len(each) for each in found] == [50] * 20
            results = [sink.get(10) for _ in range(1000)]
            assert [each.value["n"] for each in results] == list(range(1000))
            assert [each.lineage[2] for each in results] == [seq for each in found for seq in each.seq]


def test_tasks_that_send_at_once_share_bursts(agent: Agent) -> None:
    async def feed() -> tuple[list[Any], int]:
        async with AsyncSource(agent.data, "in", timeout=30) as source:
            assert source._source is not None
            bursts, send_bursts = list[int](), source._source.send_bursts

            def noted(given: Any) -> Any:
                bursts.append(len(given))
                return send_bursts(given)

            source._source.send_bursts = noted  # type: ignore[method-assign]
            return await asyncio.gather(*(source.send({"n": n}) for n in range(500))), len(bursts)

    with Sink(agent.data, "out", timeout=10) as sink:
        outcomes, bursts = asyncio.run(feed())
        assert [sink.get(10).lineage[2] for _ in range(500)] == [each.seq for each in outcomes]
    assert bursts <= 100


def test_a_call_that_cannot_be_encoded_costs_no_other(agent: Agent) -> None:
    async def feed() -> list[Any]:
        async with AsyncSource(agent.data, "in", timeout=30) as source:
            calls = (
                source.send(1), source.send(float("nan")), source.send_many({"a": [1], "b": [1, 2]}),
                source.send_many([2, 3]), source.send(4, age_ms=-1),
            )  # fmt: skip
            return await asyncio.gather(*calls, return_exceptions=True)

    first, nan, lengths, pair, age = asyncio.run(feed())
    assert isinstance(first, Admitted) and fates(pair) == [None, None] and pair[0].seq == first.seq + 1
    assert isinstance(nan, CodecError) and isinstance(lengths, UnusableValueError)
    assert isinstance(age, UnusableValueError)


def test_what_a_cancelled_task_has_handed_over_is_sent_once(agent: Agent) -> None:
    async def feed() -> Totals:
        async with AsyncSource(agent.data, "in", timeout=30) as source:
            await source.send("first")
            tasks = [asyncio.create_task(source.send(n)) for n in range(100)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert [isinstance(each, Admitted) for each in found] == [False, True] * 50
        return source.totals

    with Sink(agent.data, "out", timeout=10) as sink:
        assert asyncio.run(feed()) == Totals(101, 0)
        assert [sink.get(10).value for _ in range(101)] == ["first", *range(100)]


def test_an_iteration_that_ends_early_sends_what_it_was_given(agent: Agent) -> None:
    given = list[int]()

    def batches() -> Iterator[list[int]]:
        for n in range(1000):
            given.append(n)
            yield [n]

    async def feed() -> Totals:
        async with AsyncSource(agent.data, "in", timeout=30) as source:
            iteration = source.send_batches(batches())
            async for outcomes in iteration:
                assert all(outcomes.admitted)
                if len(given) > 5:
                    break
            await iteration.aclose()
        return source.totals

    with Sink(agent.data, "out", timeout=10) as sink:
        assert asyncio.run(feed()) == Totals(len(given), 0)
        assert [sink.get(10).value for _ in given] == given
    assert len(given) < 20


def test_an_iterable_that_fails_says_so_after_what_came_before(agent: Agent) -> None:
    async def failing() -> AsyncIterator[list[int]]:
        yield [1, 2]
        raise ZeroDivisionError

    async def feed() -> list[Outcomes]:
        found = list[Outcomes]()
        async with AsyncSource(agent.data, "in", timeout=30) as source:
            with pytest.raises(ZeroDivisionError):
                async for outcomes in source.send_batches(failing()):
                    found.append(outcomes)
        return found

    assert [fates(each) for each in asyncio.run(feed())] == [[None, None]]


def test_it_is_used_within_its_block(agent: Agent) -> None:
    async def feed() -> None:
        source = AsyncSource(agent.data, "in")
        with pytest.raises(UnusableValueError):
            await source.send(1)
        async with source:
            pass
        for use in (source.send(1), source.__aenter__()):
            with pytest.raises(UnusableValueError):
                await use

    asyncio.run(feed())


class Odd:
    """An iterable of one value that raises something of its own."""

    def __init__(self, of: str, error: BaseException | None = None) -> None:
        self._of, self._error = of, error

    def __len__(self) -> int:
        if self._of == "len" and self._error is not None:
            raise self._error
        return 10**30

    def __iter__(self) -> Iterator[int]:
        if self._of == "iter" and self._error is not None:
            raise self._error
        return iter([7])


def cancelled() -> Iterator[int]:
    yield 1
    raise asyncio.CancelledError


def test_an_iterable_that_raises_anything_costs_no_other(agent: Agent) -> None:
    sent = [Odd("len"), Odd("len", ValueError()), Odd("len", ZeroDivisionError()), Odd("len", SystemExit())]
    refused = [cancelled(), Odd("iter", SystemExit(3)), Odd("iter", StopIteration()), Odd("iter", KeyboardInterrupt())]

    async def feed() -> list[Any]:
        async with AsyncSource(agent.data, "in", timeout=30) as source:
            calls = [call for each in (*sent, *refused) for call in (source.send_many(each), source.send(1))]
            answers = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 60)
            assert isinstance(await source.send(2), Admitted)
            return answers

    answers = asyncio.run(feed())
    assert all(isinstance(each, Admitted) for each in answers[1::2])
    assert [fates(each) for each in answers[: 2 * len(sent) : 2]] == [[None]] * len(sent)
    assert [type(each) for each in answers[2 * len(sent) :: 2]] == [RuntimeError] * len(refused)


def test_an_age_that_cannot_be_costs_no_other(agent: Agent) -> None:
    async def feed() -> list[Any]:
        async with AsyncSource(agent.data, "in", timeout=30) as source:
            calls = (source.send_many([{"k": i}], age_ms=1e30 if i == 50 else 0) for i in range(100))
            return await asyncio.gather(*calls, return_exceptions=True)

    answers = asyncio.run(feed())
    wrong = answers.pop(50)
    assert isinstance(wrong, UnusableValueError) and wrong.code == "bad_origin"
    assert [fates(each) for each in answers] == [[None]] * 99
    with Source(agent.data, "in") as source, pytest.raises(UnusableValueError):
        source.send_at(1, (0, 1 << 63))


def test_what_waits_when_the_thread_dies_fails_and_so_do_later_calls(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def feed() -> None:
        async with AsyncSource(agent.data, "in") as source:
            await source.send(1)
            monkeypatch.setattr(async_source, "_answers", dies)
            calls = asyncio.gather(*(source.send(i) for i in range(600)), return_exceptions=True)
            assert {type(each) for each in await asyncio.wait_for(calls, 60)} == {NoAnswerError}
            with pytest.raises(UnusableValueError) as later:
                await source.send(2)
            assert later.value.code == "closed" and isinstance(later.value.__cause__, RuntimeError)

    def dies(*_: object) -> None:
        raise SystemExit("died of it")

    asyncio.run(feed())


def test_another_event_loop_is_refused(agent: Agent) -> None:
    source = AsyncSource(agent.data, "in")
    asyncio.run(source.__aenter__())

    async def go_on() -> None:
        for use in (source.send(1), source.__aexit__(None, None, None)):
            with pytest.raises(UnusableValueError) as refused:
                await asyncio.wait_for(use, 60)
            assert refused.value.code == "closed"

    asyncio.run(go_on())


FEEDER = """
import asyncio, sys
from node_agent.sdk import AsyncSource

async def batches():
    n = 0
    while True:
        yield [{"n": n}, {"n": n + 1}]
        n += 2
        print(n, flush=True)
        await asyncio.sleep(0.001)

async def main():
    source = AsyncSource(sys.argv[1], "in", timeout=30)
    try:
        async with source:
            async for _ in source.send_batches(batches()):
                pass
    finally:
        print("admitted", source.totals.admitted, flush=True)

asyncio.run(main())
"""


def test_ctrl_c_loses_nothing(tmp_path: Path) -> None:
    store(tmp_path / "s", chain_plan())
    with Agent(tmp_path / "s") as agent:
        command = [sys.executable, "-c", FEEDER, agent.data]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as feeder:
            assert feeder.stdout is not None
            for _ in range(40):
                given = int(feeder.stdout.readline())
            os.kill(feeder.pid, signal.SIGINT)
            rest, _ = feeder.communicate(timeout=60)
        *later, last = rest.splitlines()
        given = max(given, *map(int, later), 0)
        admitted = int(last.removeprefix("admitted "))
        assert agent.stop() == 0
    numbers = [record.seq for record in spooled(tmp_path / "s") if isinstance(record, records.Admitted)]
    assert admitted in (given, given + 2) and numbers == list(range(1, admitted + 1))
