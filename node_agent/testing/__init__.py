"""For tests: run an operator on tuples, keep one on a bench, make a window's result, read a source, or run a whole
query in virtual time; no agent, no clock.

    from node_agent.testing import Bench, readings, run, simulated, window

`docs/how_to/test_operators.md` has examples. Operators are made and called as an agent does it, with the same errors.
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
