"""A client that would feed a source which its node makes itself is told so at the door; the others are found."""

from pathlib import Path

from node_agent.core import plan as core
from node_agent.runtime.in_process import in_process
from node_agent.runtime.links import hello_refusals
from tests.node_agent.runtime.test_pulled_sources import plan


def test_nobody_feeds_what_a_node_makes(tmp_path: Path) -> None:
    made = plan(core.Pull(10**9))
    with in_process(made, tmp_path) as runtime:
        assert runtime.plans.source("in") is None
        deployed = runtime.plans.by_hash.values()
        assert hello_refusals.source("in", "a", deployed).startswith("source 'in' is made on a itself")
        other = hello_refusals.source("on", "a", deployed)
        assert other.endswith("it has no sources here: they enter where the query says 'at:'")
