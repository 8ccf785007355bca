"""What has to have happened in some seed of a campaign: a fault that never fires, or a recovery that is never needed,
proves nothing.

Each name stands for a counter of `Outcome.fired` or `Outcome.counts`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from node_agent.host.files.durable_files import DAMAGED
from node_agent.virtual.simulated.simulated_machine import STATE, SimulatedMachine
from tests.simulation.agents.agents_line import AgentsLine

ENOUGH = 200  # seeds, in which all of it happens
RECOVERIES: Mapping[str, str] = {
    "a tuple was sent again": "resent",
    "a link gave a tuple up": "record GAVE_UP",
    "a new incarnation knew what a dead one had taken over": "log taken_over",
    "a tuple proved a commit": "proven commit",
    "a deployment failed and was done again": "deployment failed",
    "an epoch was refused": "epoch refused",
    "an operator that hung was killed": "log operator_hung",
    "a process that stood still was killed": "log stood_still",
    "a process that died was started again": "log crashed",
    "a connection that was silent was given up": "log links_stalled",
    "the clocks of two nodes were compared anew": "log clock_era",
    "a node found that it had been suspended": "log suspensions",
    "a trace was mended": "log trace_problem",
    "a damaged file was set aside": "set aside",
    "records were dropped and counted": "record GAP",
    "the records after a gap were counted": "records that a GAP counts",
}
OF_THE_STREET: Mapping[str, str] = {
    **RECOVERIES,
    "policing shed a tuple": "policed",
    "a tuple was refused as too old": "refused as too old",
    "a window was abandoned": "windows abandoned",
    "windows were skipped": "windows skipped",
    "an operator lost its state": "log state_lost",
    "a tuple was shed as late": "no result: SHED",
}
OF_CHANGES: Mapping[str, str] = {
    "a change that was decided was finished by the next command": "decided change finished",
    "a change that was not decided was undone by the next command": "undecided change undone",
    "a change that was decided was left to the next command by one that had begun before": "decided change left",
    "a change that was not decided was made by a command that had begun before": "undecided change made",
    "a change was refused since something else ran": "change refused",
    "a change waited until what was before had drained": "change waited",
    "a coordinator was killed between two steps on its files": "killed at a step",
    "a node came back after a fail-over with the plan that was gone": "back with the old plan",
    "a node that came back was told that its plan is gone": "told that its plan is gone",
    "a tuple of the old plan had its result on a node that came back": "results of a gone plan",
}


def seen(line: AgentsLine) -> Counter[str]:
    """What machines and coordinators tell of recoveries, before the agents end."""
    counts = Counter(line.happened)
    for machine in line.machines.values():
        runtime = machine.agent.runtime if machine.agent is not None else None
        if runtime is not None and runtime.runtime is not None:
            counts["resent"] += sum(link.sender.resent for link in runtime.runtime.outbox.links.values())
        counts["set aside"] += _set_aside(machine)
    for deployment in line.deployments:
        counts["deployment failed"] += deployment.result == "failed"
        counts["epoch refused"] += "older than" in deployment.why or "is over" in deployment.why
    return counts


def _set_aside(machine: SimulatedMachine) -> int:
    folders = [STATE, STATE / "plans", STATE / "spool"]
    paths = [path for folder in folders if machine.disk.exists(folder) for path in machine.disk.entries(folder)]
    inner = [path for each in paths if each.parent.name == "spool" for path in machine.disk.entries(each)]
    return sum(path.name.endswith(DAMAGED) for path in [*paths, *inner])


def missing(counts: Counter[str], kinds: Iterable[str], recoveries: Mapping[str, str]) -> list[str]:
    """What never happened."""
    faults = ("cut_one_way" if kind == "cut" else kind for kind in kinds)
    return [
        *(f"fault {kind}" for kind in faults if not counts[kind]),
        *(text for text, name in recoveries.items() if not counts[name]),
    ]
