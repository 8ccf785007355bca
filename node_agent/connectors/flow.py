"""One connector of a plan as this node runs it, and which of them the plans here have."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError

from node_agent.connectors.connector_ports import Connector
from node_agent.host.files.place_names import place_name
from node_agent.host.files.plan_files import local_path
from node_agent.host.settings import Settings
from protos import plan_pb2

IN, OUT = "from", "to"


@dataclass(frozen=True, slots=True)
class Flow:
    """direction: IN, a source is fed; OUT, an output is carried away. agent: host:port where its runtime has tuples.
    useful_ns: for how long a result is of use after its origin."""

    direction: str
    connector: Connector
    agent: str
    useful_ns: int = 0

    @property
    def name(self) -> tuple[str, str]:
        """Of one node no two flows have the same."""
        return self.direction, self.connector.stream


def flows(settings: Settings, plans: Iterable[tuple[str, bool]]) -> dict[tuple[str, str], Flow]:
    """By name. plans: by their hashes, and whether each admits; one that drains still has outputs.
    Raises OSError for a plan that cannot be read now."""
    found: dict[tuple[str, str], Flow] = {}
    for hash_, admits in sorted(plans, key=lambda plan: plan[1]):  # where two have one, that of the plan that admits
        for core in range(settings.cores):
            plan = _local_plan(local_path(settings.state.plans, hash_, core))
            if plan is not None:
                agent = settings.reached[place_name(settings.name, core)]
                of_plan = _of_plan(plan, agent, settings.name)
                found |= {flow.name: flow for flow in of_plan if admits or flow.direction == OUT}
    return found


def _local_plan(path: Path) -> plan_pb2.LocalPlan | None:
    """None: there is none, or it is damaged, which the runtime says."""
    try:
        return plan_pb2.LocalPlan.FromString(path.read_bytes())
    except (FileNotFoundError, DecodeError):
        return None


def _of_plan(plan: plan_pb2.LocalPlan, agent: str, node: str) -> Iterable[Flow]:
    codecs = {stream.id: stream.codec for stream in plan.streams}
    for source in plan.sources:
        if source.HasField("connector"):
            yield Flow(IN, _connector(source.connector, source.name, codecs[source.stream], node), agent)
    for output in plan.outputs:
        if output.HasField("connector"):
            connector = _connector(output.connector, output.name, codecs[output.stream], node)
            yield Flow(OUT, connector, agent, output.deadline_ns)


def _connector(given: plan_pb2.Connector, stream: str, codec: str, node: str) -> Connector:
    return Connector(
        stream=stream, kind=given.kind, url=given.url, topic=given.topic, codec=codec, encoding=given.encoding,
        schema=given.schema, stamp=given.stamp, qos=given.qos, client=f"shimekiri-{node}-{stream}",
    )  # fmt: skip
