"""The shape of cluster.yaml, as pydantic models."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, InstanceOf, WithJsonSchema

from coordinator.errors import Mistake, MistakeError
from coordinator.spec.files.quantities import Duration, DurationOrZero, Memory, Name, Pair, Strict
from coordinator.spec.files.range_texts import MayChange
from coordinator.spec.files.security import INSECURE, MUTUAL_TLS
from coordinator.spec.policy_names import written
from coordinator.units import rate_bps
from protos.policies import MEANING, NAMES, Chosen, PolicyError

NOT_YET: dict[str, str] = {}
CORE_LINK_NS = 500_000  # assumed where not given: above the measured p99 of hops between two cores


def _bandwidth(text: object) -> int:
    value = rate_bps(text)
    if value <= 0:
        raise MistakeError("not_above_zero", f"is '{text}'", "it has to be above 0, like '100 Mbit/s'")
    return value


Bandwidth = Annotated[int, BeforeValidator(_bandwidth), WithJsonSchema({"type": "string", "examples": ["100 Mbit/s"]})]


def _policy(value: object) -> Chosen:
    try:
        return written(value)
    except PolicyError as error:
        wrong = Mistake.of(error.code, f"is wrong: {error}")
        raise MistakeError(wrong.code, wrong.text, wrong.mend) from None


PARAMETER_SCHEMA = {
    name: {"description": meaning, "type": ["integer", "string"] if name in ("k", "batch") else "string"}
    for name, meaning in MEANING.items()
}
POLICY_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": rf"^({'|'.join(NAMES)})(:.+)?$", "examples": ["edf", "bts:phi=100ms,k=5"]},
        {
            "type": "object",
            "properties": {"name": {"enum": list(NAMES)}, **PARAMETER_SCHEMA},
            "required": ["name"],
            "additionalProperties": False,
        },
    ]
}
Policy = Annotated[InstanceOf[Chosen], BeforeValidator(_policy), WithJsonSchema(POLICY_SCHEMA)]


class EmulateFile(Strict):
    """The node plays a slower one.

    cost_per_tuple: every operator uses at least this much CPU time per tuple
    """

    cost_per_tuple: Duration


class ChargesFile(Strict):
    """What the runtime costs there beside the operators, as `node-agent charges` measures it.

    decision: CPU time per task instance
    drain: CPU time per tuple read from a socket
    side: CPU time per update of a side input
    """

    decision: Duration
    drain: Duration
    side: Duration


class NodeFile(Strict):
    """A machine with an agent.

    address: the agent's control port, host:port
    speed: how fast it is; 1 is the speed at which costs are declared
    cores: places to run on, each with its own queue; leave a core of the machine for control
    core_link: latency between two of its cores; 500 us is assumed unless given
    memory: what its operators may keep; any amount unless given
    cap: the largest utilisation of a core
    policy: the order in which instances run; `edf` where that guarantees an output, else `slack`, unless given
    emulate: it plays a slower node
    charges: what the runtime costs there; assumed unless given
    cpu: the core to pin to, the first of `cores` in a row; none unless given
    """

    address: str
    speed: Annotated[float, Field(gt=0, le=1000)] = 1.0
    cores: Annotated[int, Field(ge=1, le=64, strict=True)] = 1
    core_link: DurationOrZero | None = None
    memory: Memory | None = None
    cap: Annotated[float, Field(gt=0, le=1)] = 0.9
    policy: Policy | None = None
    emulate: EmulateFile | None = None
    charges: ChargesFile | None = None
    cpu: Annotated[int, Field(ge=0, strict=True)] | None = None


class LinkFile(Strict):
    """Both ways, worst case, between two nodes. All their cores share it.

    between: the two nodes
    latency: of a tuple, in the worst case
    bandwidth: any unless given
    """

    between: Pair
    latency: DurationOrZero = 0
    bandwidth: Bandwidth | None = None


class ClusterFile(Strict):
    """cluster.yaml.

    shimekiri: the version of the format: 1
    nodes: the machines, by name
    links: who can talk; without it every pair of nodes is linked, without delay
    operators: operators.json, which `node-agent operators --json` writes, relative to this file; without it only
        built-in operators are known
    security: `insecure-loopback`: addresses on loopback only; `mutual-tls`: any address
    certificates: the folder that `coordinator certs` made for `security: mutual-tls`, relative to this file; `certs`
        unless given
    may_change: ranges of its values, by `SECTION.NAME.KEY`, for `coordinator adapt`
    """

    shimekiri: Literal[1]
    nodes: dict[Name, NodeFile] = Field(min_length=1)
    links: list[LinkFile] | None = None
    operators: str | None = None
    security: Annotated[Any, WithJsonSchema({"enum": [INSECURE, MUTUAL_TLS]})] = INSECURE
    certificates: Annotated[str, Field(min_length=1)] | None = None
    may_change: MayChange = Field(default={})
