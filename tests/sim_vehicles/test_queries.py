"""The queries that come with the vehicles: what the cluster says is installed is what is installed here."""

import json
from pathlib import Path

from node_agent.registry import Registry

QUERIES = Path(__file__).resolve().parents[2] / "sim_vehicles" / "queries"


def test_the_clusters_operators_are_those_installed_here() -> None:
    written = json.loads((QUERIES / "operators.json").read_text())
    mend = "make it again: node-agent operators --json > sim_vehicles/queries/operators.json"
    assert written == Registry().describe(), mend


def test_all_21_operators_of_the_query_have_a_manual() -> None:
    registry = Registry()
    installed = registry.describe()["operators"]
    vehicles = [name for name in installed if name.startswith("vehicle.")]
    assert len(vehicles) == 21
    for name in vehicles:
        assert registry.shape(name).implementation.__doc__, f"{name} says neither unit nor source"
