"""Batches by feed-forward on the overhead share: as large as decisions would otherwise cost more than h of the time.

    n* = s (1 - h) / (h c)      k = clamp(n* / n_phi, 1, floor(dl_min / (2 phi)))

with s the measured cost of one decision, c the measured cost per tuple of the unit, n_phi its tuples per basic batch
at the measured rate, dl_min the least sub-deadline of the node. What cannot be met end to end is shed, and what is
dear gives way to what is cheap where the node is behind (`giving_way`).
"""

from node_agent.core.jobs import Job, Queue
from node_agent.core.meters import PPM, NodeMeter, UnitMeter
from node_agent.core.plan import Parameters
from node_agent.core.policies.batch_formers import basic_batches
from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.fixed_batches import Fixed
from node_agent.core.policies.policy_parts import Policy
from node_agent.core.policies.sifting import giving_way


class FeedForward(Fixed):
    """Computes k at every decision. Before anything is measured it is the first k of the parameters."""

    __slots__ = ("_share_ppm",)

    def __init__(self, meter: NodeMeter, parameters: Parameters) -> None:
        super().__init__(meter, parameters)
        self._share_ppm = parameters.share_ppm

    def batch(self, head: Job, queue: Queue) -> int:
        """k basic batches for the unit at hand."""
        self.k = self._wanted(head.unit.meter)
        return basic_batches(head, queue, self.k, self.phi_ns)

    def eligible_ns(self, head: Job) -> int:
        """When all k are there."""
        return head.release_ns + self._wanted(head.unit.meter) * self.phi_ns

    def _wanted(self, unit: UnitMeter | None) -> int:
        share_ppm, phi_ns = self._share_ppm, self.phi_ns
        assert unit is not None  # the policy measures
        if not (unit.gap.count and self.meter.decision.count):
            return self.parameters.first_k
        above = self.meter.decision_ns * (PPM - share_ppm) * unit.gap_ns
        wanted = -(-above // (share_ppm * unit.cost_ns * phi_ns))
        return max(1, min(wanted, self.least_ns // (2 * phi_ns)))


ADAPTIVE = Policy(name="adaptive", offset=sub_deadline, tuner=FeedForward, sifter=giving_way)
