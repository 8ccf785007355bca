"""The verdict of a delivered result, against every latency that its interval allows."""

from hypothesis import given
from hypothesis import strategies as st

from protos.latency import Latency, Verdict

INSTANTS = st.integers(-30, 30)


@given(INSTANTS, st.integers(0, 10), INSTANTS, st.integers(0, 20))
def test_a_verdict_is_what_all_possible_latencies_agree_on(origin: int, width: int, at: int, deadline: int) -> None:
    kept = {at - each <= deadline for each in range(origin, origin + width + 1)}
    expected = Verdict.UNDECIDABLE if len(kept) == 2 else Verdict.MET if kept == {True} else Verdict.LATE
    assert Latency.between(origin, origin + width, at).verdict(deadline) is expected


@given(INSTANTS, st.integers(0, 11), INSTANTS)
def test_a_latency_s_middle_is_that_of_the_middle_origin(origin: int, width: int, at: int) -> None:
    latency = Latency.between(origin, origin + width, at)
    assert (at - latency.middle_ns, latency.uncertain_ns) == (origin + width // 2, width // 2)
