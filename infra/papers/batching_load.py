"""[A] 4.1: random query trees on Poisson streams, as a list of arrivals for one node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from infra.papers.one_node import Outcome, Query, Workload
from infra.papers.one_node import run as simulate
from node_agent.core.plan import Parameters
from node_agent.core.policies import POLICIES
from node_agent.core.policies.overdue import overdue
from node_agent.core.policies.parts import Policy

US, MS, S = 1000, 1_000_000, 1_000_000_000
SLOWER = 10  # a tenth of the queries on a machine ten times slower: the same load, batches and deadlines
DECISION_NS = 50 * US * SLOWER  # the middle of the printed 20 to 80 us
PHI_NS = 100 * MS
DRAWS = 400  # costs that are drawn per query; its tuples cost one of them
DEADLINES_S = (1.0, 5.0)
EQUAL_NS = 22 * US * SLOWER  # the mean cost at selectivity 0.5, for runs with equal costs
COLLECTED = {
    "bts",
    "bts1",
    "ats",
    "ats1",
    "adaptive",
}  # their streams are collected in basic batches; "adaptive open" is not

# `taat` with the paper's prediction (3.3): what cannot be met is dropped
TAAT1 = replace(POLICIES["taat"], name="taat1", dropper=overdue, measures=True)


@dataclass(frozen=True)
class Setting:
    """rate: tuples per ms and stream; queries: the paper's number, a tenth are simulated. selectivity: None: every
    operator's own, 0.01 to 1. shock_s: from then on the rate is four times as high for two seconds; 0: never. equal:
    every tuple costs the same."""

    rate: float
    queries: int = 100
    length: int = 10_000
    selectivity: float | None = 0.5
    shock_s: float = 0
    equal: bool = False
    seed: int = 1


def policy(name: str, phi_ns: int = PHI_NS, first_k: int = 1) -> Policy:
    """A policy of [A] with its printed parameters."""
    found = TAAT1 if name == "taat1" else POLICIES[name.removesuffix(" open")]
    return replace(found, parameters=Parameters(phi_ns=phi_ns, first_k=first_k))


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

    def cost_ns(self, random: Random) -> int:
        """Of one tuple."""
        cost_us, open_ = 0.0, [0]
        while open_:
            operator = open_.pop()
            cost_us += self.costs_us[operator]
            first = operator * self.fan_out + 1
            if first < len(self.costs_us) and random.random() < self.passes[operator]:
                open_ += range(first, first + self.fan_out)
        return round(cost_us * US * SLOWER)


def load(setting: Setting) -> Workload:
    """Streams of equal length; deadlines 1 to 5 s, uniform."""
    random = Random(f"{setting.seed}, {setting.queries}, {setting.selectivity}")
    queries, pools = [], []
    for _ in range(setting.queries // SLOWER):
        tree = Tree.draw(random, setting.selectivity)
        pool = [EQUAL_NS] if setting.equal else [tree.cost_ns(random) for _ in range(DRAWS)]
        pools.append(pool)
        queries.append(Query(round(random.uniform(*DEADLINES_S) * S), sum(pool) // len(pool)))
    tuples = []
    for number, pool in enumerate(pools):
        at_ns, shock_ns = 0.0, setting.shock_s * S
        for _ in range(setting.length):
            fast = setting.shock_s and shock_ns <= at_ns < shock_ns + 2 * S
            at_ns += random.expovariate(setting.rate * (4 if fast else 1)) * MS
            tuples.append((int(at_ns), number, random.choice(pool)))
    tuples.sort()
    return Workload(
        queries,
        [at_ns for at_ns, _, _ in tuples],
        [number for _, number, _ in tuples],
        [cost_ns for _, _, cost_ns in tuples],
        [at_ns + queries[number].deadline_ns for at_ns, number, _ in tuples],
    )


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
    last end; bounds: of the missed share, for equal costs (theory of the batch: W = N (c + s/n))."""

    missed: float
    overhead_s: float
    cpu: float
    decisions: int
    mean_batch: float
    grown: int
    arrivals_s: float
    bounds: tuple[float, float]


def measure(setting: Setting, names: tuple[str, ...], phi_ns: int = PHI_NS, first_k: int = 1) -> dict[str, Result]:
    """The same arrivals under each policy."""
    tuples = load(setting)
    arrivals_s = tuples.at_ns[-1] / S
    dues = [each.deadline_ns / S for each in tuples.queries]
    mean_ns = sum(tuples.cost_ns) / len(tuples.cost_ns)
    batches = collected(tuples, phi_ns) if COLLECTED & set(names) else tuples
    found = {}
    for name in names:
        if name in COLLECTED:  # those of one basic batch arrive together, the next one phi later
            done: Outcome = simulate(policy(name, phi_ns - 1, first_k), batches, DECISION_NS)
        else:
            done = simulate(policy(name, phi_ns, first_k), tuples, DECISION_NS)
        work_s = len(tuples.at_ns) * (mean_ns + DECISION_NS / max(done.mean_batch, 1)) / S
        low, high = (
            max(0.0, 100 * (1 - (arrivals_s + slack) / work_s)) for slack in (max(dues), sum(dues) / len(dues))
        )
        found[name] = Result(
            done.missed, done.overhead_ns / S,
            100 * (done.busy_ns + done.overhead_ns) / max(done.ended_ns, tuples.at_ns[-1]),
            done.decisions, done.mean_batch, done.grown, arrivals_s, (low, high),
        )  # fmt: skip
    return found
