"""A tuner that runs k basic batches of the queue whose head is most urgent, k fixed ([A] definitions 6 and 7)."""

from node_agent.core.meters import ALWAYS_NS, NodeMeter
from node_agent.core.model import Job, Queue, Unit
from node_agent.core.plan import Parameters
from node_agent.core.policies.batch_formers import basic_batches
from protos.policies import phi_ns


class Fixed:
    """A tuner that leaves k as it is, and knows phi: the larger of two error bounds, the deadline's and the window
    hop's ([A] 1.3); `protos.policies.phi_ns`."""

    __slots__ = ("k", "least_ns", "meter", "parameters", "phi_ns")

    def __init__(self, meter: NodeMeter, parameters: Parameters) -> None:
        self.meter, self.parameters = meter, parameters
        self.k = parameters.first_k
        self.least_ns = 0  # sub-deadline
        self.phi_ns = min(ALWAYS_NS, max(parameters.phi_ns, parameters.hop_phi_ns, 1))

    def loaded(self) -> None:
        """Deadlines may have changed."""
        self.least_ns = min((each.sub_deadline_ns for each in self.meter.units), default=0)
        self.phi_ns = min(ALWAYS_NS, phi_ns(self.parameters.phi_ns, self.parameters.hop_phi_ns, self.least_ns))

    def behind(self, head: Job, queue: Queue) -> int:
        """k basic batches."""
        return basic_batches(head, queue, self.k, self.phi_ns)

    def eligible_ns(self, head: Job) -> int:
        """The end of its first basic batch, which is then "put into the queue of basic batches" ([A] 2)."""
        return head.release_ns + self.phi_ns

    def ended(self, unit: Unit, jobs: int, ran_ns: int, decision_ns: int) -> None:
        """Nothing follows from it."""
