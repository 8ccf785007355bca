"""[A] 4.1: random query trees on Poisson or Zipf streams, as a list of arrivals for one node."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from random import Random
from typing import Literal

from infra.papers.one_node import Outcome, Query, Workload
from infra.papers.one_node import run as simulate
from infra.papers.policies import POLICIES
from infra.papers.policies.ideal import Overdue
from node_agent.core.plan import Parameters
from node_agent.core.policies.papers.muf import Urgency
from node_agent.core.policies.policy_parts import Policy

US, MS, S = 1000, 1_000_000, 1_000_000_000
SLOWER = 10  # a tenth of the queries on a machine ten times slower: the same load, batches and deadlines
DECISION_NS = 50 * US  # the middle of the printed 20 to 80 us
PHI_NS = 100 * MS
DRAWS = 400  # costs that are drawn per query; its tuples cost one of them
DEADLINES_S = (1.0, 5.0)
EQUAL_NS = 22 * US  # the mean cost at selectivity 0.5, for runs with equal costs
RANKS = 1000  # of Zipf's gaps: the r-th has probability 1/r and is r times the least gap
SHOCK_S = 2.0  # how long a shock lasts
Streams = Literal["poisson", "zipf gaps", "zipf rates"]

# `taat` with the paper's prediction (3.3): what cannot be met is dropped
TAAT1 = replace(POLICIES["taat"], name="taat1", dropper=Overdue(), measures=True)


@dataclass(frozen=True)
class Setting:
    """rate: tuples per ms and stream; queries: the paper's number; slower: how many times the machine is slower than
    the paper's, and so many times fewer queries are simulated. selectivity: None: every operator's own, 0.01 to 1.
    shock_s: from then on the rate is four times as high for two seconds; 0: never. equal: every tuple costs the
    same."""

    rate: float
    queries: int = 100
    length: int = 10_000
    selectivity: float | None = 0.5
    shock_s: float = 0
    equal: bool = False
    seed: int = 1
    streams: Streams = "poisson"
    slower: int = SLOWER


def policy(name: str, phi_ns: int = PHI_NS, first_k: int = 1) -> Policy:
    """A policy of [A] with its printed parameters. `NAME muf`: by maximum urgency first, not by EDF."""
    plain = name.removesuffix(" open").removesuffix(" muf")
    found = TAAT1 if plain == "taat1" else POLICIES[plain]
    if name.endswith(" muf"):
        found = replace(found, order=Urgency)
    return replace(found, parameters=Parameters(phi_ns=phi_ns, first_k=first_k))


def collects(of: Policy, name: str) -> bool:
    """Whether its streams are collected in basic batches: where it makes batches, but for `NAME open`."""
    return of.tuner is not None and not name.endswith(" open")


@dataclass(frozen=True)
class Tree:
    """Operators in levels: a tuple starts at the root; what an operator passes goes to each of its children. (Read
    from the leaves to the root, a query of one stream would be a chain.)"""

    costs_us: tuple[float, ...]
    passes: tuple[float, ...]
    fan_out: int

    @classmethod
    def draw(cls, random: Random, selectivity: float | None) -> Tree:
        """Table 1: depth and fan-out 1 to 3, costs 1 to 20 us."""
        depth, fan_out = random.randint(1, 3), random.randint(1, 3)
        operators = sum(fan_out**level for level in range(depth))
        return cls(
            tuple(random.uniform(1, 20) for _ in range(operators)),
            tuple(random.uniform(0.01, 1) if selectivity is None else selectivity for _ in range(operators)),
            fan_out,
        )

    def cost_ns(self, random: Random, slower: int) -> int:
        """Of one tuple."""
        cost_us, open_ = 0.0, [0]
        while open_:
            operator = open_.pop()
            cost_us += self.costs_us[operator]
            first = operator * self.fan_out + 1
            if first < len(self.costs_us) and random.random() < self.passes[operator]:
                open_ += range(first, first + self.fan_out)
        return round(cost_us * US * slower)


def load(setting: Setting) -> Workload:
    """Streams of equal length; deadlines 1 to 5 s, uniform."""
    random = Random(f"{setting.seed}, {setting.queries}, {setting.selectivity}")
    _, queries, pools = _drawn(setting, random)
    tuples = []
    for number, pool in enumerate(pools):
        share = _share(setting, number, len(pools))
        rate, length = setting.rate * share, round(setting.length * share)
        tuples += [(at_ns, number, random.choice(pool)) for at_ns in _instants(setting, rate, length, random)]
    tuples.sort()
    return Workload(
        queries,
        [at_ns for at_ns, _, _ in tuples],
        [number for _, number, _ in tuples],
        [cost_ns for _, _, cost_ns in tuples],
        [at_ns + queries[number].deadline_ns for at_ns, number, _ in tuples],
    )


def passing(setting: Setting) -> float:
    """The mean selectivity of all operators."""
    trees, _, _ = _drawn(setting, Random(f"{setting.seed}, {setting.queries}, {setting.selectivity}"))
    passes = [each for tree in trees for each in tree.passes]
    return sum(passes) / len(passes)


def _drawn(setting: Setting, random: Random) -> tuple[list[Tree], list[Query], list[list[int]]]:
    """The trees, the queries, and the costs that their tuples have."""
    trees, queries, pools = [], [], []
    for _ in range(setting.queries // setting.slower):
        tree = Tree.draw(random, setting.selectivity)
        equal = [EQUAL_NS * setting.slower]
        pool = equal if setting.equal else [tree.cost_ns(random, setting.slower) for _ in range(DRAWS)]
        trees.append(tree)
        pools.append(pool)
        queries.append(Query(round(random.uniform(*DEADLINES_S) * S), sum(pool) // len(pool)))
    return trees, queries, pools


def _share(setting: Setting, number: int, streams: int) -> float:
    """A stream's rate as a multiple of the mean: by Zipf's law the n-th has 1/n of the first one's."""
    if setting.streams != "zipf rates":
        return 1
    return streams / (number + 1) / sum(1 / each for each in range(1, streams + 1))


def _instants(setting: Setting, rate: float, length: int, random: Random) -> Iterator[int]:
    """Arrivals of one stream, ns."""
    at_ns, shock_ns = 0.0, setting.shock_s * S
    zipf = _zipf() if setting.streams == "zipf gaps" else None
    for _ in range(length):
        fast = setting.shock_s and shock_ns <= at_ns < shock_ns + SHOCK_S * S
        now = rate * (4 if fast else 1)
        at_ns += (random.expovariate(now) if zipf is None else zipf(random) / now) * MS
        yield int(at_ns)


@cache
def _zipf() -> Callable[[Random], float]:
    """Draws a gap of mean 1: the rank r, 1 to RANKS, with probability 1/r, over the mean rank."""
    until = list(accumulate(1 / rank for rank in range(1, RANKS + 1)))
    mean = RANKS / until[-1]
    return lambda random: (bisect(until, random.random() * until[-1]) + 1) / mean


def collected(tuples: Workload, phi_ns: int) -> Workload:
    """As [A] 2 has it: the basic batch manager collects what a stream brings within phi and queues it as one; deadlines
    count from each tuple's own arrival."""
    phases = [number * phi_ns // len(tuples.queries) for number in range(len(tuples.queries))]
    closed = sorted(
        (phases[number] + -(-(at_ns - phases[number]) // phi_ns) * phi_ns, index)
        for index, (at_ns, number) in enumerate(zip(tuples.at_ns, tuples.query, strict=True))
    )
    order = [index for _, index in closed]
    return replace(
        tuples,
        at_ns=[at_ns for at_ns, _ in closed],
        query=[tuples.query[index] for index in order],
        cost_ns=[tuples.cost_ns[index] for index in order],
        due_ns=[tuples.due_ns[index] for index in order],
        origin_ns=[tuples.at_ns[index] for index in order],
    )


@dataclass(frozen=True)
class Result:
    """One run. overhead_s: of all decisions; cpu: busy and deciding, share of the time until the last arrival or the
    last end; bounds: of the missed share, for equal costs (theory of the batch: W = N (c + s/n)); by_second: missed
    share of the tuples that came in each second; k: the controller's at the end."""

    missed: float
    overhead_s: float
    cpu: float
    decisions: int
    mean_batch: float
    grown: int
    arrivals_s: float
    bounds: tuple[float, float]
    k: int
    by_second: tuple[float | None, ...]


def measure(setting: Setting, names: tuple[str, ...], phi_ns: int = PHI_NS, first_k: int = 1) -> dict[str, Result]:
    """The same arrivals under each policy."""
    return measured_with(setting, {name: policy(name, phi_ns, first_k) for name in names})


def measured_with(setting: Setting, policies: Mapping[str, Policy]) -> dict[str, Result]:
    """As `measure`, with policies at hand."""
    tuples = load(setting)
    batches: dict[int, Workload] = {}
    found = {}
    for name, each in policies.items():
        runs, arrivals = each, tuples
        if collects(each, name):  # those of one basic batch arrive together, the next one phi later
            phi_ns = each.parameters.phi_ns
            arrivals = batches.setdefault(phi_ns, collected(tuples, phi_ns))
            runs = replace(each, parameters=replace(each.parameters, phi_ns=phi_ns - 1))
        found[name] = _result(tuples, simulate(runs, arrivals, DECISION_NS * setting.slower), setting, arrivals)
    return found


def _result(tuples: Workload, done: Outcome, setting: Setting, arrivals: Workload) -> Result:
    last_ns = tuples.at_ns[-1]
    dues = [each.deadline_ns / S for each in tuples.queries]
    cost_ns = sum(tuples.cost_ns) / len(tuples.cost_ns) + DECISION_NS * setting.slower / max(done.mean_batch, 1)
    work_s = len(tuples.at_ns) * cost_ns / S
    low, high = (max(0.0, 100 * (1 - (last_ns / S + slack) / work_s)) for slack in (max(dues), sum(dues) / len(dues)))
    came, met = [0] * (last_ns // S + 1), [0] * (last_ns // S + 1)
    for at_ns, in_time in zip(arrivals.origin_ns or arrivals.at_ns, done.met, strict=True):
        came[at_ns // S] += 1
        met[at_ns // S] += in_time
    return Result(
        done.missed, done.overhead_ns / S, 100 * (done.busy_ns + done.overhead_ns) / max(done.ended_ns, last_ns),
        done.decisions, done.mean_batch, done.grown, last_ns / S, (low, high), done.k,
        tuple(100 - 100 * good / all_ if all_ else None for good, all_ in zip(met, came, strict=True)),
    )  # fmt: skip
