"""A refused change says what takes most of the bound, not only where it waits."""

from coordinator.change.admission import _late
from protos.plan.guarantee import Claim, Step

MS = 1_000_000


def part(kind: str, what: str, ns: int, waiting_ns: int = 0) -> Step:
    return Step(kind=kind, what=what, node="base", ns=ns, work_ns=ns - waiting_ns, waiting_ns=waiting_ns, blocking_ns=0)


def said(*trail: Step) -> str:
    bound_ns = sum(one.ns for one in trail)
    why = "the bound exceeds the deadline"
    claim = Claim(
        deadline_ns=10 * MS, bound_ns=bound_ns, guaranteed=False, why=why, from_admission_ns=None, trail=trail
    )
    return _late(claim, "after the change")


def test_what_takes_most_is_named() -> None:
    age, unit = part("age", "age of s on admission", 50 * MS), part("unit", "unit 5", 2 * MS, 580_000)
    start = "its bound would be 52 ms after the change, its deadline is 10 ms: 42 ms too late; "
    waits = "on node base, where unit 5 waits up to 580 us behind others"
    assert said(age, unit) == f"{start}most of it, 50 ms: age of s on admission; the longest wait is {waits}"
    busy = part("unit", "unit 5", 52 * MS, 51 * MS)
    assert said(busy).endswith("most of it on node base, where unit 5 waits up to 51 ms behind others")
    working = part("unit", "unit 5", 52 * MS, 0)
    assert said(working).endswith("most of it, 52 ms: the work of unit 5 on node base")
