"""Options of the command line that name what is not there, or that do not go together."""

from __future__ import annotations

from coordinator.errors import CoordinatorError, Mistake
from coordinator.model.choices import Choices
from coordinator.plan import policy_choice
from coordinator.spec import core_assignment, policy_names
from coordinator.spec.cluster import Cluster
from coordinator.spec.files.yaml_source import nearest
from coordinator.spec.query import Query
from protos.policies import PolicyError


class BadOptionError(CoordinatorError):
    """A command line option cannot be used; the subject of each mistake is the option."""

    exit_code = 2


def check(query: Query, cluster: Cluster, choices: Choices) -> None:
    """Raises BadOptionError where an option names what is not there."""
    operators = {operator.name: operator for operator in query.operators}
    wrong = []
    for name, node in choices.place.items():
        if name not in operators:
            text = f"--place {name}={node}: operator '{name}' is unknown"
            wrong.append(Mistake("unknown_operator", text, nearest(name, operators), "--place"))
        elif not (named := {place.name for place in cluster.places(node)}):
            text = f"--place {name}={node}: node '{node}' is unknown"
            wrong.append(Mistake("unknown_node", text, core_assignment.meant(cluster, node), "--place"))
        elif named.isdisjoint(allowed := core_assignment.allowed(operators[name], cluster)):
            text = f"--place {name}={node}: the query allows it on {', '.join(allowed)} only"
            wrong.append(Mistake("place_not_allowed", text, "change 'nodes:' or 'forbid_nodes:' there", "--place"))
    if choices.survive not in (0, 1):
        text = f"--survive {choices.survive}: plans can survive 0 or 1 failing nodes"
        wrong.append(Mistake("too_many_failures", text, "write --survive 1", "--survive"))
    try:
        policy_names.read(choices.policy or policy_choice.SOUND.name)
    except PolicyError as error:
        wrong.append(Mistake.of(error.code, f"--policy {choices.policy}: {error}", "--policy"))
    outputs = {output.name for output in query.outputs}
    if choices.tighten is not None and choices.tighten not in outputs:
        text = f"--tighten {choices.tighten}: output '{choices.tighten}' is unknown"
        wrong.append(Mistake("unknown_output", text, nearest(choices.tighten, outputs), "--tighten"))
    if choices.tighten is not None and (choices.allocator, choices.model) != ("deadline", "sound"):
        wrong.append(
            Mistake(
                "tighten_without_bounds",
                "--tighten needs '--model sound', the only one that knows bounds",
                subject="--tighten",
            )
        )
    if wrong:
        raise BadOptionError(*wrong)
