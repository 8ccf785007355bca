"""One fault at real agents in network namespaces; and that the recount finds what cannot be."""

import os
import time
from pathlib import Path

import pytest

from coordinator.lab import namespaces
from infra.chaos import campaign, host_cluster
from infra.chaos.faults import KINDS, Fault
from infra.chaos.recount import UNKNOWN, Fed, Got, Incarnation, recount
from protos import records as rec

KEY = (1, 1, 7)
SECOND = 1_000_000_000


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault("runtime killed", "b", 0.0), marks=pytest.mark.long, id="runtime killed"),
        pytest.param(Fault("power off", "b", 1.0), marks=pytest.mark.soak, id="power off"),
    ],
)
def test_every_tuple_has_its_outcome_after_a_fault_and_nothing_is_left(tmp_path: Path, fault: Fault) -> None:
    if why := host_cluster.why_not():
        pytest.skip(why)
    lines: list[str] = []
    done = campaign.go(tmp_path, [fault], time.monotonic(), lines.append)
    assert done.problems == []
    (one,) = done.rounds
    assert one.recovery_s is not None and (one.unknown_s is not None) == KINDS[fault.kind].mutes
    assert done.total.outcomes["delivered"] >= campaign.WORKS
    assert not list(namespaces.NAMES.glob(f"{namespaces.PREFIX}-{os.getpid()}-*"))


def _whole() -> list[Incarnation]:
    """A tuple from its admission to its result."""
    found = [Incarnation(host, 1) for host in "abc"]
    for one, kinds in zip(
        found, (("Admitted", "Ran", "Sent"), ("Received", "Ran", "Sent"), ("Received", "Ran")), strict=True
    ):
        for kind in kinds:
            record = getattr(rec, kind).make(source=KEY[0], epoch=KEY[1], seq=KEY[2])
            one.by_key[KEY].append(record)
    found[2].by_key[KEY].append(
        rec.Output.make(source=1, epoch=1, seq=7, at_ns=SECOND, origin_lo_ns=0, origin_hi_ns=0, deadline_ns=SECOND)
    )
    return found


SENT = [Fed(3, 0, 1, KEY[1:])]
CAME = [Got(3, KEY, SECOND)]


def test_a_whole_trace_has_no_problem() -> None:
    counted = recount(_whole(), SENT, CAME)
    assert counted.problems == [] and counted.outcomes == {"delivered": 1} and counted.met == 1


def test_a_tuple_that_disappears_is_a_problem_unless_a_runtime_died_on_its_way() -> None:
    written = _whole()
    del written[2].by_key[KEY][1:]
    assert len(recount(written, SENT, []).problems) == 1
    written[2].lossy = True
    counted = recount(written, SENT, [])
    assert counted.problems == [] and counted.outcomes == {UNKNOWN: 1}


def test_an_admission_without_a_record_a_second_lineage_another_number_and_a_false_met_are_problems() -> None:
    written = _whole()
    del written[0].by_key[KEY][0]
    assert len(recount(written, SENT, CAME).problems) == 1
    assert len(recount(_whole(), [Fed(3, 0, 1, "too old")], CAME).problems) == 1
    assert len(recount(_whole(), SENT, [Got(4, KEY, SECOND)]).problems) == 1
    assert len(recount(_whole(), [Fed(3, -SECOND, 1, KEY[1:])], CAME).problems) == 1
    written = _whole()
    written[2].by_key[KEY] *= 2
    assert len(recount(written, SENT, CAME).problems) == 1
