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
    Bug(
        "change_not_finished", "What a killed command has left of a change is not finished.",
        "coordinator/change/unfinished.py",
        "    if intention.left(plan) is None:\n", "    if intention.left(plan) is not None:\n",
    ),
    Bug(
        "decided_taken_for_undone", "A change that nodes have committed counts as given up.",
        "coordinator/change/intention.py",
        "    if not states & {agent_pb2.COMMITTED, agent_pb2.DRAINING}:\n",
        "    if not states & {agent_pb2.DRAINING}:\n",
    ),
    Bug(
        "half_told", "What a killed command has decided is in the files, and nodes that do not know are not told.",
        "coordinator/change/unfinished.py",
        "            deploy.deploy(made, agents, progress)\n", "            agents.status()\n",
    ),
    Bug(
        "intention_too_late", "That a change is meant is written when it was decided.",
        "coordinator/change/intention.py",
        "            _write(intention, file)\n", "            file.truncate(0)\n",
    ),
    Bug(
        "other_fail_over_plan", "Without a node that has failed, what remains without another one is deployed.",
        "coordinator/plan/plan_file.py",
        "    found = plan.failover[host].plan\n", "    found = next(iter(plan.failover.values())).plan\n",
    ),
    Bug(
        "lost_node_kept", "Going on without a node asks it all the same, and tells the others the way to it.",
        "coordinator/change/deploy_file.py",
        "    with reach(file.of_plan(made)) as agents:\n",
        "    with reach(file.of_plan(plan_file.read(plan))) as agents:\n",
    ),
    Bug(
        "back_under_the_old_plan", "A node that has the plan of before committed goes on with it when another is.",
        "node_agent/control/deploy_protocol.py",
        "        durable = self.durable.put(replace(known, state=State.COMMITTED)).one_admits().with_ran()\n",
        "        durable = self.durable.put(replace(known, state=State.COMMITTED)).with_ran()\n",
    ),
    Bug(
        "told_too_early", "What was meant is forgotten when the files are in step, before all nodes have been told.",
        "coordinator/change/intention.py",
        "    found.put_in_step()\n", "    found.put_in_step()\n    forget(path)\n",
    ),
    Bug(
        "others_change_undone", "A command that is refused takes away what a killed one has left.",
        "coordinator/change/apply_change.py",
        "            elif not anothers:\n", "            else:\n",
    ),
    Bug(
        "plan_json_first", "A collection names its latest plan in plan.json before run.json knows of it.",
        "coordinator/fleet/collection/collect.py",
        '            _write(run / "run.json", _document(run, before, state))\n            kept.write_last()\n',
        '            kept.write_last()\n            _write(run / "run.json", _document(run, before, state))\n',
    ),
)  # fmt: skip
