"""One fault after the other: begin, heal, wait until all works again, recount every tuple."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from infra.chaos.faults import KINDS, Fault
from infra.chaos.host_cluster import HOSTS, ChaosError, Cluster, until
from infra.chaos.recount import Recount
from node_agent.host.clock import now_ns

SECOND = 1_000_000_000
CALM_S = 1.0  # of traffic before a fault
SETTLE_S = 4.5  # after the last tuple was sent: beyond its deadline it has an outcome
WORKS = 10  # results in a row of tuples that were sent afterwards


@dataclass
class Round:
    """One fault and what was measured, in seconds. unknown_s: a whole `coordinator status` that calls the host unknown.
    admission_s: from its end (of a killed or frozen runtime: from its begin) until a tuple is admitted again.
    recovery_s: the same until a result comes of a tuple that was sent since then."""

    fault: Fault
    unknown_s: float | None = None
    admission_s: float | None = None
    recovery_s: float | None = None
    problems: list[str] = field(default_factory=list)


@dataclass
class Campaign:
    """What was done so far."""

    rounds: list[Round] = field(default_factory=list)
    total: Recount = field(default_factory=Recount)

    @property
    def problems(self) -> list[str]:
        """All of them."""
        return [f"{one.fault.kind} at {one.fault.host}: {each}" for one in self.rounds for each in one.problems]

    def document(self) -> dict[str, object]:
        """As JSON."""
        rounds = [vars(one) | {"fault": one.fault._asdict()} for one in self.rounds]
        return {"rounds": rounds, "total": vars(self.total)}


def go(folder: Path, faults: Iterable[Fault], until_s: float, say: Callable[[str], None]) -> Campaign:
    """Faults until that instant of the monotonic clock, at least one. Raises ChaosError, LabError."""
    campaign = Campaign()
    with Cluster(folder) as cluster:
        cluster.go()
        until(lambda: _works_since(cluster, 0) is not None, "the first results come")
        for fault in faults:
            one = _round(cluster, fault, campaign)
            campaign.rounds.append(one)
            say(_line(one))
            (folder / "chaos.json").write_text(json.dumps(campaign.document(), indent=1) + "\n", encoding="utf-8")
            if time.monotonic() >= until_s:
                break
    return campaign


def _round(cluster: Cluster, fault: Fault, campaign: Campaign) -> Round:
    kind, one = KINDS[fault.kind], Round(fault)
    time.sleep(CALM_S)
    begun, since_ns = time.monotonic(), now_ns()
    kind.begin(cluster, fault.host)
    if kind.mutes:
        silent, seconds = cluster.silent_hosts()
        one.unknown_s = seconds if fault.host in silent else None
        if silent != {fault.host}:
            one.problems.append(f"the coordinator calls {sorted(silent) or 'nobody'} unknown")
    if kind.lasts:
        time.sleep(max(0.0, begun + fault.seconds - time.monotonic()))
        since_ns = now_ns()
    kind.end(cluster, fault.host)
    _heal(cluster, one, since_ns)
    known, counted = set(campaign.total.problems), _counted(cluster, one)
    one.problems += [problem for problem in counted.problems if problem not in known]
    campaign.total = counted
    return one


def _heal(cluster: Cluster, one: Round, since_ns: int) -> None:
    """Wait until everything works, which is measured."""
    try:
        until(lambda: _works_since(cluster, since_ns) is not None, "results come again")
    except ChaosError as error:
        one.problems.append(str(error))
        return
    one.recovery_s = _works_since(cluster, since_ns)
    ends = [each.end_ns for each in cluster.fed() if isinstance(each.answer, tuple) and each.end_ns > since_ns]
    one.admission_s = (min(ends) - since_ns) / SECOND


def _works_since(cluster: Cluster, since_ns: int) -> float | None:
    """Seconds from then until the first result of a tuple that was sent later, where WORKS of them have come."""
    later = {each.number for each in cluster.fed() if each.at_ns >= since_ns}
    came = sorted(each.got_ns for each in cluster.got() if each.number in later)
    return (came[0] - since_ns) / SECOND if len(came) >= WORKS else None


def _counted(cluster: Cluster, one: Round) -> Recount:
    """All tuples, once the last of them has its outcome. Until then the agents are asked whether they are there."""
    cluster.pause()
    paused = time.monotonic()
    silent, _ = cluster.silent_hosts()
    if silent:
        one.problems.append(f"{sorted(silent)} do not answer after all was healed")
    time.sleep(max(0.0, paused + SETTLE_S - time.monotonic()))
    counted = cluster.recounted()
    cluster.go()
    return counted


def _line(one: Round) -> str:
    fault, parts = one.fault, []
    for name, seconds in (
        ("unknown to the coordinator", one.unknown_s), ("admits again", one.admission_s), ("results", one.recovery_s),
    ):  # fmt: skip
        if seconds is not None:
            parts.append(f"{name} after {seconds:.2f} s")
    lasted = f" for {fault.seconds:g} s" if KINDS[fault.kind].lasts else ""
    line = f"{time.strftime('%H:%M:%S')} {fault.kind} at {fault.host}{lasted}: {', '.join(parts)}"
    return "\n".join([line, *(f"  PROBLEM: {problem}" for problem in one.problems)])


def hosts_of(campaign: Campaign, kind: str) -> str:
    """How often each host had it."""
    return " ".join(f"{host}:{sum(one.fault[:2] == (kind, host) for one in campaign.rounds)}" for host in HOSTS)
