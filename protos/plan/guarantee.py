"""What a plan promises of each output, and the steps that its bounds are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from protos.json_shape import omitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """Jobs of a unit that run before one of another."""

    what: str
    jobs: int
    ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A part of a bound. unit to done_before_ns: of a task unit, what runs before it."""

    what: str
    ns: int
    kind: str
    node: str
    work_ns: int
    waiting_ns: int
    blocking_ns: int
    unit: int | None = omitted()
    ahead: tuple[Ahead, ...] | None = omitted()
    done_before_ns: int | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeCheck:
    """bound_ns None: not analysed."""

    limit_ns: int
    bound_ns: int | None
    guaranteed: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCheck:
    """bound_bytes None: not analysed."""

    limit_bytes: int
    bound_bytes: int | None
    guaranteed: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """Of what an output asks beyond its deadline."""

    wait: TimeCheck | None = omitted()
    throughput: TimeCheck | None = omitted()
    queue: SizeCheck | None = omitted()

    @property
    def asked(self) -> Mapping[str, TimeCheck | SizeCheck]:
        """Those that there are, by name."""
        every = {"wait": self.wait, "throughput": self.throughput, "queue": self.queue}
        return {name: each for name, each in every.items() if each is not None}

    @property
    def hold(self) -> bool:
        """All that is asked is guaranteed."""
        return all(each.guaranteed for each in self.asked.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPath:
    """The longest way of a source's data to an output. of: what it bounds there. bound_ns None: nothing bounds it, for
    `why`. steps: hop by hop, they sum up to the bound."""

    of: Literal["age", "reaction"]
    source: str
    bound_ns: int | None
    steps: tuple[Step, ...] = omitted(())
    why: str = omitted("")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedCost:
    """Of an operator, what a bound with a confidence counts on. cost_ns: of an instance, on its node; exceeded: the
    greatest probability that one takes longer, as far as `samples` calls say; runs: that can influence one result."""

    cost_ns: int
    exceeded: float
    runs: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidentBound:
    """That at least `share` of an output's results are within bound_ns, given that costs keep the distribution that was
    measured; None: no bound, for `why`. certain_ns: within which all are, given that no cost is above the plan's; None:
    no bound. measured_with: the confidence in what the samples say, of all operators together; late: of the results
    that may be beyond, what these costs use up; costs: by operator. `guaranteed` needs all that is asked."""

    share: float
    measured_with: float
    independent: bool = omitted(False)
    bound_ns: int | None
    certain_ns: int | None
    late: float
    guaranteed: bool
    why: str
    costs: Mapping[str, CountedCost]
    needed: int | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is promised of an output. bound_ns: from origin to result; None: there is none. from_admission_ns: likewise
    from admission on. missing: what else may keep results away. age_ns, reaction_ns: as asked, None: not asked;
    age_bound_ns, reaction_bound_ns: what is found, None: not bounded, or not asked; data_paths: of every source that
    these count. `guaranteed` needs all that is asked. confident: where the output asks for a confidence; the rest of
    the claim is then about every result all the same."""

    deadline_ns: int
    bound_ns: int | None
    guaranteed: bool
    why: str
    from_admission_ns: int | None
    trail: tuple[Step, ...]
    qos: Checks | None = omitted()
    missing: tuple[str, ...] = omitted(())
    age_ns: int | None = omitted()
    age_bound_ns: int | None = omitted()
    reaction_ns: int | None = omitted()
    reaction_bound_ns: int | None = omitted()
    data_paths: tuple[DataPath, ...] = omitted(())
    confident: ConfidentBound | None = omitted()

    @property
    def holds(self) -> bool:
        """Every result is in time, or as large a share of them as the output asks for."""
        return self.guaranteed or (self.confident is not None and self.confident.guaranteed)

    @property
    def judged_ns(self) -> int | None:
        """What results of a run are held against: the bound with the confidence that is asked, else that of all."""
        if self.confident is not None and self.confident.bound_ns is not None:
            return self.confident.bound_ns
        return self.bound_ns

    @property
    def is_fresh(self) -> bool:
        """The age and the reaction that are asked are guaranteed."""
        asked = ((self.age_ns, self.age_bound_ns), (self.reaction_ns, self.reaction_bound_ns))
        return all(limit is None or (bound is not None and bound <= limit) for limit, bound in asked)
