"""Dropping what can meet none of its outputs any more, by the work that is left up to them."""

from node_agent.core.model import Job


def hopeless(job: Job, at_ns: int, ahead: int) -> bool:
    """Whether the tuple can meet none of its outputs any more, if measured costs hold. The lower bound of its age
    counts: what may be younger than it seems is given the chance."""
    unit, lineage = job.unit, job.lineage
    meter = unit.meter
    assert meter is not None  # the policy measures
    slack_ns = meter.slack_ns
    return slack_ns is not None and at_ns + meter.node.decision.of() > lineage[5] + slack_ns
