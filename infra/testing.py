"""For tests of whole queries: a query in virtual time inside pytest, in three lines.

    from infra.testing import simulated

    def test_every_parcel_is_in_time():
        done = simulated("query.yaml", "cluster.yaml", {"parcels": [{"id": 1, "kg": 3}]}, operators=["operators.py"])
        assert done["sorted"].values == [{"id": 1, "kg": 3}] and done["sorted"].late == 0

It stands here since it needs two rooms that do not know each other: the coordinator makes the plan, the virtual
cluster runs it. Agents import neither, so `node_agent.testing` cannot have it. Needs the extra [coordinator].
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from node_agent.testing import simulated_plan as testing
from node_agent.testing.simulated_plan import FailedError, Operators, Output, Simulated, Tuples
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan

try:
    from coordinator.model.choices import Choices
    from coordinator.solve import planner
    from coordinator.spec.files.yaml_source import Source
except ModuleNotFoundError as missing:
    why = f"infra.testing needs {missing.name}: pip install 'shimekiri[coordinator]'"
    raise ModuleNotFoundError(why, name=missing.name) from None

Files = str | Path | Sequence[str | Path]


def simulated(
    query: Files,
    cluster: str | Path,
    tuples: Tuples,
    operators: Operators = (),
    scenario: Scenario | None = None,
    choices: Choices | None = None,
    may_fail: bool = False,
) -> Simulated:
    """Plan the query, or several, and run the plan in virtual time, which takes no time of its own and is the same
    every time.

    query, cluster: the files, as of `coordinator plan`. operators: Python files as of `--operators`, or the classes and
    functions themselves; the cluster's operators.json is made of them, not read from the file. tuples, scenario,
    may_fail and what comes back: as of `node_agent.testing.simulated_plan.simulated`. choices: as of `planned`.
    """
    registry = testing.registered(operators)
    return testing.simulated(planned(query, cluster, registry, choices), tuples, registry, scenario, may_fail)


def planned(query: Files, cluster: str | Path, operators: Operators = (), choices: Choices | None = None) -> Plan:
    """The plan of these files. choices: the options of `coordinator plan`, as
    `Choices(place={"weigh": "a"}, best_effort=True)`.

    Raises the coordinator's BadInputError (file:line: what is wrong, for each), and its InfeasibleError where no plan
    holds every deadline.
    """
    paths = [Path(query)] if isinstance(query, str | Path) else [Path(each) for each in query]
    with TemporaryDirectory() as folder:
        listing = Path(folder) / "operators.json"
        listing.write_text(json.dumps(testing.registered(operators).describe()))

        def name_it(file: Source) -> None:
            if isinstance(file.data, dict):
                file.data["operators"] = str(listing)

        found, nodes, types = planner.load(paths, Path(cluster), (None, name_it))
    assert nodes is not None  # a path was given
    return planner.plan(found, nodes, types, choices or Choices())


__all__ = ["Choices", "FailedError", "Output", "Scenario", "Simulated", "planned", "simulated"]
