"""Runs seeds of one folder's product: `python -m tests.simulation.planted.run_seeds faults:1 agents:1`, a line each."""

import importlib
import json
import resource
import sys
import time
from collections.abc import Collection

MOST_SECONDS = 240  # of CPU time for one seed: one that goes on within a single step never ends
MODULES = {
    "faults": "tests.simulation.faults.campaign",
    "agents": "tests.simulation.agents.agent_campaign",
    "changing": "tests.simulation.agents.changing.changing_campaign",
    "street": "tests.simulation.agents.street.street_campaign",
}


def has_kind(campaign: str, seed: int, kinds: Collection[str]) -> bool:
    """Whether that seed has a fault of one of these kinds."""
    return bool(importlib.import_module(MODULES[campaign]).kinds_drawn(seed) & set(kinds))


def main(wanted: list[str]) -> None:
    """Ends with the first one that fails."""
    for each in wanted:
        campaign, _, seed = each.partition(":")
        began = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(began) + MOST_SECONDS, resource.RLIM_INFINITY))
        outcome = importlib.import_module(MODULES[campaign]).run(int(seed))
        told = {
            "campaign": campaign, "seed": int(seed), "problems": list(outcome.problems),
            "seconds": time.process_time() - began, "simulated_ns": outcome.simulated_ns,
        }  # fmt: skip
        print(json.dumps(told), flush=True)
        if outcome.problems:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
