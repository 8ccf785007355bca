"""The sub-deadlines that a search begins with: what they leave room for, and what comes last."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from coordinator.model import routes
from coordinator.model.limits import Limits
from coordinator.plan import policy_choice
from coordinator.solve.guaranteed.candidate import Setting, candidate
from coordinator.solve.guaranteed.search import Finder
from coordinator.solve.guaranteed.sub_deadlines import Effort, Search
from coordinator.spec import input_files, policy_names
from coordinator.spec.runtime_charges import NOTHING
from infra.reference_system import reference_files
from tests.coordinator.guarantee.written_plans import cluster
from tests.coordinator.solve.guaranteed.sound_graphs import SECONDS

MS = 1_000_000
FUSED = """\
shimekiri: 1
query: q
sources:
  often: {at: a, every: 40 ms}
  seldom: {at: a, every: 100 ms}
  rarely: {at: a, every: 250 ms}
operators:
  all: {run: join, in: [often, seldom, rarely], sync: all, cost: 1 ms}
  last: {run: pass, in: all, cost: 1 ms}
outputs:
  fused: {from: last, at: a, deadline: 400 ms}
"""


def search(query: Path, nodes: Path, analyses: int) -> Search:
    """For all operators on the first node."""
    asked, machines, types = input_files.read_files(query, nodes)
    assert machines is not None  # a path was given
    machines = policy_choice.everywhere(machines, policy_names.read("edf"))
    found = Finder(Setting(asked, machines, types, "path"), NOTHING, Limits(SECONDS))
    place = dict.fromkeys(range(len(found.problem.items)), 0)
    names = {operator.name: next(iter(machines.nodes)) for operator in asked.operators}
    laid = candidate(found.setting, names, routes.direct(found.problem, place))
    return Search(laid, NOTHING, Effort(analyses, time.monotonic() + SECONDS))


def test_a_way_leaves_room_for_what_its_fusion_waits_for(files: Callable[[str, str], tuple[Path, Path]]) -> None:
    """The slowest input waits for the second slowest, and every other one for less than its own period."""
    found = search(*files(FUSED, cluster("a")), 1)
    assert [way.fixed_ns for way in found.unit_paths] == [100 * MS]
    even, urgent, _ = found.starts()
    assert set(even.values()) == set(urgent.values()) == {300 * MS}


def test_what_leads_to_side_inputs_only_comes_last_and_once_more_first(tmp_path: Path) -> None:
    found = search(*reference_files.write(tmp_path, 0.5, 1), 1)
    on_ways = {number for way in found.unit_paths for number in way.units}
    even, urgent, fresh = found.starts()
    aside = found.candidate.system.units.keys() - on_ways
    assert {found.candidate.system.units[number].stages[0].operator for number in aside} >= {"NDTLocalizer"}
    assert {start[number] for start in (even, urgent) for number in aside} == {300 * MS}
    assert {fresh[number] for number in aside} == {min(even.values())}
    assert all(fresh[number] == even[number] for number in on_ways)


def test_the_first_that_are_tried_guarantee_the_reference_system_at_90_percent(tmp_path: Path) -> None:
    made = search(*reference_files.write(tmp_path, 0.9, 1), 1).feasible()
    assert made is not None and made.holds
