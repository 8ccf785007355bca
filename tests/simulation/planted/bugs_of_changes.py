"""Bugs in adding and removing queries, in their plan files, and in going on without a node."""

from tests.simulation.planted.bug import Bug

BUGS = (
    Bug(
        "old_plan_not_kept", "The plan that gives way is overwritten.",
        "coordinator/change/intention.py",
        "            plan_file.write(plan_file.read(path), self.old)\n", "            plan_file.read(path)\n",
    ),
    Bug(
        "epoch_of_the_lowest", "The next epoch follows that of the node that knows least.",
        "coordinator/fleet/deployment/deploy.py",
        "    epoch = _next_epoch(max(", "    epoch = _next_epoch(min(",
    ),
    Bug(
        "kept_begins_anew", "Of the operators that a change keeps only windows go on; others begin with fresh state.",
        "node_agent/core/engine/handover.py",
        "        if same:\n", "        if same and operator.window is not None:\n",
    ),
)  # fmt: skip
