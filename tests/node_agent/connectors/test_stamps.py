"""Instants as messages have them, and ages from them."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.connectors.stamps import StampError, Stamps, instant_ns

AT = 1_790_000_000_123_456_789  # ns since 1970
SECOND = 10**9


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (AT, AT),
        (AT // 1000, AT // 1000 * 1000),
        (AT // 10**6, AT // 10**6 * 10**6),
        (AT // SECOND, AT // SECOND * SECOND),
        ({"sec": 5, "nanosec": 7}, 5 * SECOND + 7),
        ({"secs": 5, "nsecs": 7}, 5 * SECOND + 7),
        (SimpleNamespace(seconds=5, nanos=7), 5 * SECOND + 7),
        ("1970-01-01T00:00:05.000007Z", 5 * SECOND + 7000),
        ("1970-01-01T02:00:05+02:00", 5 * SECOND),
    ],
)
def test_an_instant_is_read_as_devices_write_it(value: object, expected: int) -> None:
    assert instant_ns(value) == expected


def test_seconds_with_a_fraction_are_as_exact_as_a_float_is() -> None:
    assert instant_ns(AT / SECOND) == pytest.approx(AT, abs=500)


@given(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text(st.characters(codec="ascii"))
    | st.lists(st.integers())
    | st.integers(max_value=0)
)
def test_what_is_no_instant_is_said_to_be_none(value: object) -> None:
    try:
        assert 0 < instant_ns(value) < 10**29
    except ValueError as error:
        assert str(error)


@pytest.mark.parametrize("value", [True, None, [], {}, {"sec": "5"}, "yesterday", "2026-01-01T00:00:00", -1, 10**21])
def test_these_are_none(value: object) -> None:
    with pytest.raises(ValueError):
        instant_ns(value)


def test_an_age_is_from_the_stamp_to_now_and_odd_ones_are_counted() -> None:
    stamps = Stamps("header.stamp")

    def age_ns(stamp_ns: int) -> int:
        return stamps.age_ns({"header": {"stamp": stamp_ns}}, None, AT)

    assert age_ns(AT - 3 * SECOND) == 3 * SECOND
    assert age_ns(AT + SECOND // 2) == 0
    assert (stamps.ahead, stamps.back) == (1, 0)
    assert age_ns(AT - 4 * SECOND) == 4 * SECOND
    assert (stamps.ahead, stamps.back) == (1, 1)
    with pytest.raises(StampError):
        age_ns(AT + 2 * SECOND)
    with pytest.raises(StampError):
        stamps.age_ns({"header": {}}, None, AT)


def test_without_a_path_it_is_the_transports_or_the_arrival() -> None:
    assert Stamps("").age_ns({}, AT - 1, AT) == 0
    assert Stamps("transport").age_ns({}, AT - 1, AT) == 1
    with pytest.raises(StampError):
        Stamps("transport").age_ns({}, None, AT)


@pytest.mark.parametrize(
    "stamp",
    ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-23:59", {"sec": -(10**12)}, {"sec": 10**400}, 10**19],
)
def test_a_stamp_that_no_clock_counts_to_is_refused(stamp: object) -> None:
    with pytest.raises(StampError):
        Stamps("at").age_ns({"at": stamp}, None, AT)


def test_an_age_that_no_clock_counts_is_refused() -> None:
    with pytest.raises(StampError):
        Stamps("transport").age_ns({}, 0, 2**64 - 1)
