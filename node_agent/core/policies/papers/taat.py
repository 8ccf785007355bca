"""Task at a time ([A] 3.1): one tuple per decision, the earliest deadline first; what batches are compared with."""

from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.policy_parts import Policy

TAAT = Policy(name="taat", offset=sub_deadline)
