"""A query whose operators have their places: its transactions, and what [P] and the planner make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.errors import InfeasibleError
from coordinator.guarantee.analysis import shortened, unit_by_unit
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import System
from coordinator.model import problem, routes
from coordinator.model.limits import Limits
from coordinator.solve import sub_deadline_allocation
from coordinator.solve.guaranteed import lower_bounds, unit_paths
from coordinator.solve.guaranteed.candidate import Candidate, Setting, candidate
from coordinator.solve.guaranteed.search import ANALYSES
from coordinator.solve.guaranteed.sub_deadlines import Effort, Search
from coordinator.solve.milp import deadline
from coordinator.spec import input_files
from coordinator.spec.runtime_charges import NOTHING
from infra.papers.conventional import read_plan
from infra.papers.conventional.drawn_transactions import Case
from infra.papers.conventional.transactions import Transactions

Dues = tuple[int, ...]


@dataclass(frozen=True)
class Bounded:
    """Sub-deadlines, and the product's bounds with them."""

    dues_ns: Dues
    bounds_ns: Mapping[str, int | None]


@dataclass(frozen=True)
class PlacedQuery:
    """Sub-deadlines are by activity of `transactions`, after releases, in ns. Nothing is charged for the runtime."""

    model: problem.Problem
    candidate: Candidate

    @classmethod
    def of(cls, case: Case) -> PlacedQuery:
        """Read and checked as a user's files are; streams go straight from node to node."""
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "query.yaml").write_text(case.query)
            (folder / "cluster.yaml").write_text(case.cluster)
            query, cluster, types = input_files.read_files(folder / "query.yaml", folder / "cluster.yaml")
        assert cluster is not None  # a path was given
        model = problem.build(query, cluster, case.place)
        index = {node.name: number for number, node in enumerate(model.nodes)}
        place = {number: index[case.place[item.members[0]]] for number, item in enumerate(model.items)}
        setting = Setting(query, cluster, types, "path")
        return cls(model, candidate(setting, case.place, routes.direct(model, place)))

    @property
    def system(self) -> System:
        """With sub-deadlines still to be chosen."""
        return self.candidate.system

    @cached_property
    def transactions(self) -> Transactions:
        """Raises BeyondTransactionsError."""
        return read_plan.read(self.system)

    @cached_property
    def paper_dues_ns(self) -> Dues | None:
        """[P]'s model, corrected, at these places; None: its demand rows (6) have no solution."""
        try:
            allocation = deadline.allocate(self.model, Limits())
        except InfeasibleError:
            return None
        shares = sub_deadline_allocation.per_operator(self.model, allocation.d_ns)
        units = self.system.units
        return tuple(sum(shares[stage.operator] for stage in units[number].stages) for number in self.system.order)

    @cached_property
    def sound(self) -> Bounded:
        """The planner's for a settled placement, with the effort that it takes there. Where even the least that its
        analysis can say is late, the first that it tries."""
        late = lower_bounds.late(self.system, NOTHING, cut=False)
        found = Search(self.candidate, NOTHING, Effort(1 if late else ANALYSES, inf)).feasible()
        assert found is not None  # the first analysis is always made
        return Bounded(tuple(found.due_ns[number] for number in self.system.order), found.bounds_ns)

    def our_bounds_ns(self, dues_ns: Dues) -> Mapping[str, int | None]:
        """By the product's analysis, from admission on; None, for all: one grows beyond the longest deadline."""
        system = self.candidate.with_deadlines(dict(zip(self.system.order, dues_ns, strict=True)))
        found = claims(shortened(unit_by_unit(system, NOTHING, 1)))
        return {name: claim.from_admission_ns for name, claim in found.items()}

    def fitted_ns(self, dues_ns: Dues) -> Dues:
        """Made shorter, in proportion, where they add up to more than a deadline: (5), which the planner keeps to."""
        given = dict(zip(self.system.order, dues_ns, strict=True))
        found = unit_paths.fitted(self.system, unit_paths.unit_paths(self.system), given)
        return tuple(found[number] for number in self.system.order)


__all__ = ["Bounded", "Dues", "PlacedQuery"]
