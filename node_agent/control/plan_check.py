"""A plan that comes over the wire: nothing in it is believed before it was checked here."""

import ipaddress
import json
import re
from typing import Any, NamedTuple

from node_agent.control.deployment import Route
from node_agent.host.files.place_names import place_name
from node_agent.host.files.plan_files import missing_cores
from node_agent.problems import ProblemError
from node_agent.wire.plan_error import PlanError
from node_agent.wire.plan_message import core_plan
from protos import agent_pb2, digests, plan_pb2
from protos.records import stamp_of

MOST_PLAN_BYTES = 16 << 20
MOST_ROUTES = 256
MOST_EPOCH = 2**62
HASH_BYTES = 32
CORE = re.compile(r"[1-9][0-9]{0,3}")


class RefusalError(ProblemError, ValueError):
    """Why a request is refused, and the mend."""


class Checked(NamedTuple):
    """A prepare request that holds together. parts: for each core of this node that runs one, its LocalPlan, binary."""

    hash: str
    epoch: int
    query: str
    whole: bytes
    local_plans: dict[int, bytes]
    routes: tuple[Route, ...]


def checked_hash(hash_: bytes, epoch: int) -> str:
    """A plan's hash as 64 hex digits. Raises RefusalError where it or the epoch is none."""
    if len(hash_) != HASH_BYTES:
        raise RefusalError("wrong_hash", f"a plan's hash has {HASH_BYTES} bytes, not {len(hash_)}")
    if not 0 < epoch <= MOST_EPOCH:
        raise RefusalError("out_of_range", f"epochs are between 1 and {MOST_EPOCH}, not {epoch}")
    return hash_.hex()


def checked_prepare(request: agent_pb2.PrepareRequest, node: str, cores: int = 1, tls: bool = False) -> Checked:
    """Check a request to prepare a plan on `node`, whose agent runs `cores` runtimes. tls: routes may leave this
    machine. Raises RefusalError."""
    hash_ = checked_hash(request.hash, request.epoch)
    if len(request.plan) > MOST_PLAN_BYTES:
        text = f"the plan has {len(request.plan)} bytes, at most {MOST_PLAN_BYTES} are taken"
        raise RefusalError("too_large", text)
    if digests.sha256(request.plan).digest() != request.hash:
        raise RefusalError("changed", "the plan does not have the hash that came with it", "plan again")
    routes = _routes(request, tls)
    local_plans, queries = dict[int, bytes](), set[str]()
    for core, message in _local_plans(request.plan, node, cores).items():
        try:
            plan = core_plan(message, stamp_of(hash_), request.epoch)
        except PlanError as error:
            raise RefusalError(
                error.code, f"node {message.node} cannot run this plan: {error}", subject=message.node
            ) from None
        if unknown := plan.runs - {each.run for each in plan.installed}:
            raise RefusalError(
                "no_operator",
                f"node {message.node} cannot run this plan: it does not say which version and code of"
                f" {', '.join(sorted(unknown))[:200]} it is for",
                "plan again with this release",
                subject=message.node,
            )
        _check_peers(message, routes)
        local_plans[core] = message.SerializeToString(deterministic=True)
        queries.add(message.query)
    if len(queries) > 1:
        text = f"the parts of node {node} are of several queries: {', '.join(sorted(queries))}"
        raise RefusalError("several_queries", text, "plan again", subject=node)
    return Checked(hash_, request.epoch, queries.pop(), request.plan, local_plans, routes)


def _check_peers(message: plan_pb2.LocalPlan, routes: tuple[Route, ...]) -> None:
    known = {(index, name) for index, name, _ in routes}
    for peer in message.peers:
        if (peer.index, peer.name) not in known:
            text = f"no route to node {peer.name} (number {peer.index}), which this plan exchanges tuples with"
            raise RefusalError("no_route", text, subject=peer.name)


def _local_plans(plan: bytes, node: str, cores: int) -> dict[int, plan_pb2.LocalPlan]:
    """By core: the plans of `node` and of its further places."""
    try:
        values: Any = json.loads(plan)
        nodes: Any = values["nodes"]
        known = sorted(nodes.keys())
        found = {core: nodes[name] for name in known if (core := _core(name, node)) is not None}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        text = f"not a plan: {type(error).__name__} {str(error)[:80]}"
        raise RefusalError("not_a_plan", text, "make it with `coordinator plan`") from None
    if not found:
        text = f"this is node {node}, the plan is for {', '.join(known)[:200]}"
        raise RefusalError("unknown_node", text, "check the addresses", subject=node)
    if why := missing_cores(found, cores, node):
        raise RefusalError("no_core", f"node {node} cannot run this plan: {why}", subject=node)
    return {core: _local_plan(found[core], place_name(node, core)) for core in sorted(found)}


def _core(place: str, node: str) -> int | None:
    """Which core of the node it is; None: a place of another one."""
    if place == node:
        return 0
    number = place.removeprefix(f"{node}.")
    return int(number) if number != place and CORE.fullmatch(number) else None


def _local_plan(local: Any, node: str) -> plan_pb2.LocalPlan:
    from google.protobuf import json_format  # not before the first plan: it counts in the time until ready

    try:
        message = json_format.ParseDict(local, plan_pb2.LocalPlan())
    except (json_format.ParseError, TypeError, AttributeError, RecursionError) as error:
        text = f"the local plan of node {node} cannot be read: {str(error)[:200]}"
        raise RefusalError("unreadable", text, "install the same release", subject=node) from None
    if message.node != node:
        text = f"the local plan of node {node} says that it is for {message.node!r}"
        raise RefusalError("other_node", text, "plan again", subject=node)
    return message


def _routes(request: agent_pb2.PrepareRequest, tls: bool) -> tuple[Route, ...]:
    if len(request.routes) > MOST_ROUTES:
        raise RefusalError("too_many", f"{len(request.routes)} routes came, at most {MOST_ROUTES} are taken")
    routes = tuple((route.index, route.node, route.address) for route in request.routes)
    if len({index for index, _, _ in routes}) != len(routes):
        raise RefusalError("given_twice", "two routes have the same node number", "check the addresses")
    for _, name, address in routes:
        host = split_address(address)[0]
        if tls:
            _check_reachable(name, host)
        elif not is_loopback(host):
            raise RefusalError(
                "insecure_off_loopback",
                f"node {name} is at {address}: without TLS only loopback addresses are used",
                "`coordinator certs` makes identities, and `node-agent run --tls` takes them",
                subject=name,
            )
    return routes


def _check_reachable(name: str, host: str) -> None:
    """A name would have to be looked up by the thread that schedules, and may take seconds."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise RefusalError(
            "not_an_address",
            f"node {name} is at {host[:80]!r}: a route is an IP address, since looking up a name would keep the node"
            " from running tuples",
            "`coordinator addresses` looks names up",
            subject=name,
        ) from None
    if address.is_unspecified or address.is_multicast:
        mend = "give the address that others reach it by"
        raise RefusalError("no_machine", f"node {name} is at {host}, which is no machine", mend, subject=name)


def split_address(address: str) -> tuple[str, int]:
    """host:port, with brackets around an IPv6 host. Raises RefusalError."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise RefusalError("not_an_address", f"{address[:80]!r} is no address", "it is written host:port")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether what is sent there stays on this machine. Names other than localhost are not looked up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
