"""Earliest deadline first, switching at operator boundaries: the other reading of [P] 5.4's last sentence.

An instance keeps its deadline. After each operator it goes on if its deadline is still the earliest; otherwise the
rest of it waits with that deadline. Built for comparison; `edf` is the reading that the guarantees cover.
"""

from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.policy_parts import Policy

EDF_OP = Policy(name="edf-op", offset=sub_deadline, yields=True)
