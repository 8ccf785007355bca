"""Quality that an output asks beyond its deadline, as declared: [Q] 2.3, of which `guarantee.quality_checks` has the
rules, and the freshness of data (`guarantee.freshness`)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor

from protos.plan.outputs import AskedConfidence
from protos.plan.outputs import Qos as PlanQos

SECOND_NS = 10**9


@dataclass(frozen=True)
class Qos:
    """Of one output; None: not asked. `throughput`: tuples a second, as written; with it `latency_ns`."""

    wait_ns: int | None = None
    throughput: float | None = None
    latency_ns: int | None = None
    queue_bytes: int | None = None

    def document(self) -> PlanQos | None:
        """For plan.json: what is asked; None: nothing."""
        if not self:
            return None
        return PlanQos(
            wait_ns=self.wait_ns,
            throughput_per_s=self.throughput,
            latency_ns=self.latency_ns,
            queue_bytes=self.queue_bytes,
        )

    @classmethod
    def read(cls, written: PlanQos | None) -> Qos:
        """From plan.json."""
        if written is None:
            return NOTHING
        return cls(written.wait_ns, written.throughput_per_s, written.latency_ns, written.queue_bytes)

    def __bool__(self) -> bool:
        return self != NOTHING

    @property
    def every_ns(self) -> Fraction:
        """1/P, exactly, in ns."""
        assert self.throughput is not None
        return SECOND_NS / Fraction(str(self.throughput))

    @property
    def served_ns(self) -> int | None:
        """L + 1/P: by then rule 3 wants a tuple that finds nothing before it."""
        return None if self.throughput is None else floor((self.latency_ns or 0) + self.every_ns)

    @property
    def admitted_ns(self) -> int | None:
        """The longest from admission to a result that rules 2 and 3 allow; None: neither is asked."""
        return min((each for each in (self.wait_ns, self.served_ns) if each is not None), default=None)


NOTHING = Qos()


@dataclass(frozen=True)
class Freshness:
    """A limit on the age of the data behind a result, or on the reaction to a source. `without`: sources that do not
    count."""

    limit_ns: int
    without: tuple[str, ...] = ()

    @classmethod
    def read(cls, limit_ns: int | None, without: tuple[str, ...]) -> Freshness | None:
        """From plan.json; None: not asked."""
        return None if limit_ns is None else cls(limit_ns, without)


@dataclass(frozen=True)
class Confidence:
    """What share of an output's results is to be within its bound, given that costs keep the distribution that they
    were measured with. `independent`: the costs of two instances have nothing to do with each other."""

    share: Fraction
    independent: bool = False

    @property
    def late(self) -> Fraction:
        """The share that may be beyond it."""
        return 1 - self.share

    @property
    def said(self) -> str:
        """`99.9 %`."""
        return show_share(self.share)

    def document(self) -> AskedConfidence:
        """For plan.json."""
        return AskedConfidence(share=float(self.share), independent=self.independent)

    @classmethod
    def read(cls, written: AskedConfidence | None) -> Confidence | None:
        """From plan.json; None: not asked."""
        return None if written is None else cls(Fraction(str(written.share)), written.independent)


def show_share(share: Fraction | float) -> str:
    """`99.9 %`, exactly."""
    return f"{float(100 * Fraction(str(share))):.10g} %"
