"""What becomes of messages on their way to the ego."""

from itertools import groupby, pairwise
from pathlib import Path

import pytest

from sim_vehicles.v2v.channel import IDEAL, Channel, parse_channel
from sim_vehicles.v2v.loss_trace import read_trace
from tests.sentences import Wording
from tests.sim_vehicles.recorded_data import WYOMING

SAID = Wording("replay", "channel")

MS = 1_000_000


def delays(channel: Channel, seed: int = 1, distance_m: float = 50.0, n: int = 4000) -> list[int | None]:
    return [channel.delay(seed, "E", i * 100 * MS, "cpm", distance_m) for i in range(n)]


def test_the_ideal_channel_changes_nothing() -> None:
    assert parse_channel("ideal") == IDEAL == Channel()
    assert set(delays(IDEAL, n=10)) == {0}


def test_loss_is_independent_and_seeded() -> None:
    channel = parse_channel("loss=0.1")
    found = delays(channel)
    assert found == delays(channel)
    assert found != delays(channel, seed=2)
    lost = [one is None for one in found]
    assert sum(lost) / len(lost) == pytest.approx(0.1, abs=0.015)
    after = [late for early, late in pairwise(lost) if early]
    assert sum(after) / len(after) == pytest.approx(0.1, abs=0.05), "a loss says nothing about the next message"
    assert {None} == set(delays(parse_channel("loss=1"), n=50))


def test_draws_do_not_depend_on_what_was_asked_before() -> None:
    channel = parse_channel("loss=0.5,delay=5ms,jitter=5ms")
    asked = [("E", 1), ("D", 1), ("E", 2)]
    found = {key: channel.delay(1, key[0], key[1] * MS, "cam", 10) for key in asked}
    assert found == {key: channel.delay(1, key[0], key[1] * MS, "cam", 10) for key in reversed(asked)}


def test_delay_and_jitter() -> None:
    found = [one for one in delays(parse_channel("delay=5ms,jitter=2ms")) if one is not None]
    assert len(found) == 4000
    assert 3 * MS <= min(found) < 3.1 * MS
    assert 6.9 * MS < max(found) <= 7 * MS
    assert sum(found) / len(found) == pytest.approx(5 * MS, rel=0.01)
    assert set(delays(parse_channel("delay=5ms"), n=10)) == {5 * MS}
    assert parse_channel("delay=5ms,jitter=2ms").longest_ns == 7 * MS


def test_delivery_ratio_by_distance() -> None:
    channel = parse_channel("half=200m")
    assert channel.delivery_ratio(200) == 0.5
    assert channel.delivery_ratio(0) == pytest.approx(0.99966, abs=1e-5)
    assert channel.delivery_ratio(150) == pytest.approx(0.8808, abs=1e-4)  # 1 / (1 + exp(-2))
    assert channel.delivery_ratio(250) == pytest.approx(0.1192, abs=1e-4)
    assert channel.delivery_ratio(1e9) == pytest.approx(0)
    assert Channel(loss=0.2, half_m=200).delivery_ratio(200) == pytest.approx(0.4)
    found = delays(channel, distance_m=150)
    assert sum(one is not None for one in found) / len(found) == pytest.approx(0.88, abs=0.02)
    near = delays(channel, distance_m=100)
    assert not any(far is not None and close is None for far, close in zip(found, near, strict=True)), (
        "one draw for all"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "wrong_form --channel"),
        ("bad", "wrong_form --channel"),
        ("loss=0.1,ideal", "wrong_form --channel"),
        ("loss=", "wrong_form --channel"),
        ("loss=x", "wrong_form --channel"),
        ("loss=1.5", "wrong_form --channel"),
        ("loss=nan", "wrong_form --channel"),
        ("loss=0.1,loss=0.2", "given_twice --channel"),
        ("delay=5", "no_unit --channel: delay"),
        ("jitter=2ms", "wrong_form --channel"),
        ("delay=1ms,jitter=2ms", "wrong_form --channel"),
        ("delay=1min", "wrong_form --channel"),
        ("half=200", "wrong_form --channel"),
        ("half=0m", "wrong_form --channel"),
        ("trace=none.csv", "none.csv no_file"),
    ],
)
def test_a_channel_that_cannot_be(text: str, said: str) -> None:
    with SAID.refuses(said):
        parse_channel(text)


def test_a_list_of_ones_and_zeros(tmp_path: Path) -> None:
    path = tmp_path / "loss.txt"
    path.write_text("1 1 0\n0,1\n")
    assert read_trace(path) == (True, True, False, False, True)
    channel = parse_channel(f"trace={path},delay=1ms")
    got = [one is not None for one in delays(channel, n=50)]
    assert got[:5] * 10 == got, "the trace over and over"
    assert sorted(got[:5]) == [False, False, True, True, True]
    slot = [channel.delay(1, "E", 700 * MS + ms * MS, kind, 50) for ms in range(0, 100, 10) for kind in ("cam", "cpm")]
    assert len(set(slot)) == 1, "all of a station's messages in one slot share its fate"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1 1\n0 2\n", "loss.txt:2 no_mark"),
        ("0 0", "loss.txt nothing_received"),
        ("", "loss.txt nothing_received"),
        ("id,source,msgCnt\n", "loss.txt:1 missing_column time_utc"),
        ("time_utc,id,source,msgCnt\nt,1,RV,128\n", "loss.txt:2 out_of_range msgCnt"),
        ("time_utc,id,source,msgCnt\nt,1,EV,12\n", "loss.txt no_messages"),
    ],
)
def test_a_trace_that_cannot_be(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "loss.txt"
    path.write_text(content)
    with SAID.refuses(said):
        read_trace(path)


def test_the_counter_says_what_was_lost(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [("RV", "7", 126), ("EV", "1", 3), ("RV", "7", 127), ("RV", "7", 127), ("RV", "7", 2), ("RV", "8", 50)]
    path.write_text("time_utc,id,source,msgCnt\n" + "".join(f"t,{who},{kind},{n}\n" for kind, who, n in rows))
    assert read_trace(path) == (True, True, False, False, True), "0 and 1 are missing; 127 came twice"


@pytest.mark.skipif(not WYOMING.is_file(), reason="the recorded messages are not here")
def test_recorded_loss() -> None:
    trace = read_trace(WYOMING)
    assert (sum(trace), len(trace)) == (93, 129)
    runs = [len(list(run)) for received, run in groupby(trace) if not received]
    assert max(runs) == 3, "the longest gap: 401 ms"
    channel = parse_channel(f"trace={WYOMING}")
    got = sum(one is not None for one in delays(channel, n=1290))
    assert got == 930
