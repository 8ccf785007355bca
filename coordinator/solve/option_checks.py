"""Options of the command line that name what is not there, or that do not go together."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.errors import CoordinatorError
from coordinator.model.choices import Choices
from coordinator.plan import policy_choice
from coordinator.spec import places, policy_names
from coordinator.spec.cluster import Cluster
from coordinator.spec.files.yaml_source import nearest
from coordinator.spec.query import Query


class BadOptionError(CoordinatorError):
    """A command line option cannot be used."""

    exit_code = 2

    def __init__(self, wrong: Sequence[str]) -> None:
        self.wrong = list(wrong)
        super().__init__("\n".join(wrong))

    def lines(self) -> list[str]:
        """One line per option."""
        return self.wrong


def check(query: Query, cluster: Cluster, choices: Choices) -> None:
    """Raises BadOptionError where an option names what is not there."""
    operators = {operator.name: operator for operator in query.operators}
    wrong = []
    for name, node in choices.place.items():
        if name not in operators:
            wrong.append(f"--place {name}={node}: operator '{name}' is unknown{nearest(name, operators)}")
        elif not (named := {place.name for place in cluster.places(node)}):
            wrong.append(f"--place {name}={node}: node '{node}' is unknown{places.meant(cluster, node)}")
        elif named.isdisjoint(allowed := places.allowed(operators[name], cluster)):
            only = f"the query allows it on {', '.join(allowed)} only"
            wrong.append(f"--place {name}={node}: {only}; change 'nodes:' or 'forbid_nodes:' there")
    if choices.survive not in (0, 1):
        wrong.append(f"--survive {choices.survive}: plans can survive 0 or 1 failing nodes; write --survive 1")
    try:
        policy_names.read(choices.policy or policy_choice.SOUND.name)
    except ValueError as error:
        wrong.append(f"--policy {choices.policy}: {error}")
    outputs = {output.name for output in query.outputs}
    if choices.tighten is not None and choices.tighten not in outputs:
        wrong.append(
            f"--tighten {choices.tighten}: output '{choices.tighten}' is unknown{nearest(choices.tighten, outputs)}"
        )
    if choices.tighten is not None and (choices.allocator, choices.model) != ("deadline", "sound"):
        wrong.append("--tighten needs '--model sound', the only one that knows bounds")
    if wrong:
        raise BadOptionError(wrong)
