"""What the planner takes for built in is what an agent has built in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from coordinator.spec.catalog import BUILTIN, load


def test_the_planners_table_is_the_agents(tmp_path: Path) -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "node_agent", "operators", "--json"], capture_output=True, text=True, check=True
    ).stdout
    installed = json.loads(listed)["operators"]
    for name, known in BUILTIN.items():
        facts = known.model_dump(by_alias=True)
        for key in ("kind", "inputs", "side", "output", "with"):
            assert installed[name][key] == facts[key], name
        assert installed[name].get("variadic", False) == known.variadic
    path = tmp_path / "operators.json"
    path.write_text(listed)
    catalog = load(path, Path("cluster.yaml"), 1)
    assert set(BUILTIN) <= set(catalog.operators)
    assert "json" in catalog.codecs
