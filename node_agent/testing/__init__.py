"""Users' tests without agent and clock: one operator, a bench, a window's result, a source, a whole query.

    from node_agent.testing import Bench, readings, run, simulated, window

Operators are made and called as in an agent, with the same errors. A query runs in virtual time; the coordinator plans
it in a process of its own. Begin at bench.py for one operator, at simulated_query.py for a query. See
docs/how_to/test_operators.md.
"""

from node_agent.operators.mutation_check import ChangedError
from node_agent.operators.signature import OperatorError
from node_agent.testing.bench import SECOND_NS, START_NS, Bench, run
from node_agent.testing.plan_choices import Choices
from node_agent.testing.readings import readings
from node_agent.testing.simulated_plan import FailedError, Simulated
from node_agent.testing.simulated_query import InfeasibleError, planned, simulated
from node_agent.testing.windows import window
from node_agent.virtual.errors import BadInputError
from node_agent.virtual.scenario import Scenario

__all__ = [
    "SECOND_NS", "START_NS", "BadInputError", "Bench", "ChangedError", "Choices", "FailedError", "InfeasibleError",
    "OperatorError", "Scenario", "Simulated", "planned", "readings", "run", "simulated",
    "window",
]  # fmt: skip
