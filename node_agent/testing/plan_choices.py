"""How the plan of a test is made: the options of `coordinator plan`, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Each field is the option of `coordinator plan` of its name, with the same default.

    place: operators held to a node. policy: on every node, written like bts:phi=100ms,k=5; None: as in the cluster
    file. tighten: the output whose bound is made as small as the others allow. survive: how many nodes may fail, 0 or
    1. best_effort: a plan even where no guarantee is possible. sharing: several queries run what they have in common
    once. time_limit_s: for the solver. overhead: what bounds charge for the runtime.
    """

    allocator: Literal["deadline", "sqpr"] = "deadline"
    model: Literal["sound", "paper"] = "sound"
    units: Literal["path", "operator"] = "path"
    policy: str | None = None
    place: Mapping[str, str] = field(default_factory=dict)
    sub_deadlines: Literal["model", "deadline", "proportional"] = "model"
    overhead: Literal["measured", "none"] = "measured"
    tighten: str | None = None
    survive: int = 0
    best_effort: bool = False
    sharing: bool = True
    time_limit_s: float = 60.0
    seed: int = 0
    solver: Literal["highs", "gscip"] = "highs"

    def options(self) -> list[str]:
        """For the command line."""
        return [
            f"--allocator={self.allocator}",
            f"--model={self.model}",
            f"--units={self.units}",
            *([f"--policy={self.policy}"] if self.policy is not None else []),
            *(f"--place={operator}={node}" for operator, node in self.place.items()),
            f"--sub-deadlines={self.sub_deadlines}",
            f"--overhead={self.overhead}",
            *([f"--tighten={self.tighten}"] if self.tighten is not None else []),
            f"--survive={self.survive}",
            *(["--best-effort"] if self.best_effort else []),
            *([] if self.sharing else ["--no-sharing"]),
            f"--time-limit={self.time_limit_s}",
            f"--seed={self.seed}",
            f"--solver={self.solver}",
        ]
