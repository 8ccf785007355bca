"""Dropping what can meet none of its outputs any more, by the work that is left up to them."""

from node_agent.core.model import Job


def hopeless(job: Job, at_ns: int, ahead: int) -> bool:
    """Whether the tuple can meet none of its outputs any more, if measured costs hold. The lower bound of its age
    counts: what may be younger than it seems is given the chance."""
    meter, youngest_ns = job.unit.meter, job.lineage[5]
    assert meter is not None  # the policy measures
    return at_ns + meter.node.decision.of() > youngest_ns + meter.slack_ns
