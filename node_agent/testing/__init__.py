"""For tests of operators: run one on tuples, keep one on a bench, or make a window's result; no agent, no clock.

    from node_agent.testing import Bench, run, window

`node_agent/TESTING.md` has examples. Operators are made and called as an agent does it, with the same errors.
"""

from node_agent.operators.mutation_check import ChangedError
from node_agent.operators.signature import OperatorError
from node_agent.testing.bench import SECOND_NS, START_NS, Bench, run
from node_agent.testing.windows import window

__all__ = ["SECOND_NS", "START_NS", "Bench", "ChangedError", "OperatorError", "run", "window"]
