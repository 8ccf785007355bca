"""Faults: what each does to a host, and how it ends."""

import signal
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from infra.chaos.host_cluster import HOSTS, ChaosError, Cluster, until

SHORTEST_S, LONGEST_S = 1.0, 8.0
NEXT = {"a": "b", "b": "c", "c": "b"}  # whom a host sends to; c only acknowledges


class Fault(NamedTuple):
    """One of them. seconds: how long it lasts, where it does not end by itself."""

    kind: str
    host: str
    seconds: float


class Kind(NamedTuple):
    """mutes: the coordinator gets no answer meanwhile. lasts: until it is ended; else it is over as it begins."""

    begin: Callable[[Cluster, str], None]
    end: Callable[[Cluster, str], None]
    mutes: bool = False
    lasts: bool = True


def _power_off(cluster: Cluster, host: str) -> None:
    cluster.hosts[host].power_off()


def _power_on(cluster: Cluster, host: str) -> None:
    cluster.hosts[host].power_on()


def _to_runtime(number: signal.Signals) -> Callable[[Cluster, str], None]:
    """It is replaced by its supervisor."""

    def begin(cluster: Cluster, host: str) -> None:
        machine = cluster.hosts[host]
        pid = machine.runtime()
        if not pid:
            raise ChaosError(f"host {host} has no runtime")
        machine.signal(number, [pid])

    return begin


def _freeze(cluster: Cluster, host: str) -> None:
    cluster.hosts[host].signal(signal.SIGSTOP)


def _thaw(cluster: Cluster, host: str) -> None:
    cluster.hosts[host].signal(signal.SIGCONT)


def _fill(cluster: Cluster, host: str) -> None:
    cluster.hosts[host].fill()


def _empty(cluster: Cluster, host: str) -> None:
    cluster.hosts[host].empty()


def _cut(cluster: Cluster, host: str) -> None:
    cluster.lab.cut(host)


def _reconnect(cluster: Cluster, host: str) -> None:
    cluster.lab.mend(host)


def _cut_way(cluster: Cluster, host: str) -> None:
    cluster.lab.cut_way(host, NEXT[host])


def _reconnect_way(cluster: Cluster, host: str) -> None:
    cluster.lab.mend_way(host, NEXT[host])


def _replaced(cluster: Cluster, host: str) -> None:
    until(lambda: cluster.hosts[host].runtime() != 0, f"host {host} has a runtime again")


KINDS: dict[str, Kind] = {
    "power off": Kind(_power_off, _power_on, mutes=True),
    "runtime killed": Kind(_to_runtime(signal.SIGKILL), _replaced, lasts=False),
    "runtime frozen": Kind(_to_runtime(signal.SIGSTOP), _replaced, lasts=False),
    "agent frozen": Kind(_freeze, _thaw, mutes=True),
    "disk full": Kind(_fill, _empty),
    "cut off": Kind(_cut, _reconnect, mutes=True),
    "cut one way": Kind(_cut_way, _reconnect_way),
}


def drawn(random: Random) -> Iterator[Fault]:
    """For ever; each kind at each host before any comes again."""
    while True:
        round_ = [(kind, host) for kind in KINDS for host in HOSTS]
        random.shuffle(round_)
        for kind, host in round_:
            yield Fault(kind, host, round(random.uniform(SHORTEST_S, LONGEST_S), 1))
