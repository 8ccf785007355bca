"""The shape of costs.yaml: what operators, and sources that nodes call, were measured to cost, by query and node."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from coordinator.errors import MistakeError
from coordinator.spec.files.quantities import NAME, Duration, Name, Strict
from protos.plan.operators import ADD

DEGRADED = ".degraded"
OPERATOR = rf"^{NAME}({ADD.replace('.', '[.]')}|[.]degraded)?$"


class MeasuredFile(Strict):
    """What an operator was measured to cost on one node: CPU time of a call in that node's own time.

    mean: of the calls
    p99: an upper bound of the 99th percentile
    worst: of the calls
    elapsed: mean of the time that went by
    cv: standard deviation over mean
    samples: how many calls were measured
    speed: the node's speed, as cluster.yaml has it
    rt: measured with the real-time class
    measured: when, in UTC
    plan: the first eight digits of the plan's hash
    calls: how they are distributed, ascending: at most so long took so many of them
    """

    mean: Duration
    p99: Duration
    worst: Duration
    elapsed: Duration
    cv: Annotated[float, Field(ge=0, le=1e9)]
    samples: Annotated[int, Field(ge=1, le=2**62, strict=True)]
    speed: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    rt: bool = False
    measured: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\dZ$")]
    plan: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    calls: list[tuple[Duration, Annotated[int, Field(ge=1, le=2**62, strict=True)]]] = Field(default=[])

    @model_validator(mode="after")
    def _all_counted(self) -> Self:
        ends = [end for end, _ in self.calls]
        if self.calls and (sum(n for _, n in self.calls) != self.samples or ends != sorted(set(ends))):
            raise MistakeError(
                "calls_unlike_samples",
                "has 'calls' that are not its 'samples' in ascending order",
                "measure again with 'coordinator profile', or remove 'calls'",
            )
        return self

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.worst < max(self.mean, self.p99):
            raise MistakeError(
                "worst_below_mean",
                "has a 'worst' below its 'mean' or its 'p99'",
                "measure again with 'coordinator profile'",
            )
        return self


class OperatorCostsFile(Strict):
    """What was measured of an operator. The cost of something else is not used.

    run: the installed operator
    version: its version
    with: its parameters
    on: by node
    """

    run: str
    version: str = "1"
    with_: dict[str, Any] = Field(default={}, alias="with")
    on: dict[Name, MeasuredFile] = Field(min_length=1)


class CostsFile(Strict):
    """costs.yaml.

    shimekiri: the version of the format: 1
    costs: by query and operator. An operator `W` with a window has two: `W.add` is that of a tuple, `W` that of a
        window; `O.degraded` is that of what runs in place of `O` when tuples are late. A source with `run:` has that
        of a call
    """

    shimekiri: Literal[1]
    costs: dict[Name, dict[Annotated[str, Field(pattern=OPERATOR, max_length=80)], OperatorCostsFile]]
