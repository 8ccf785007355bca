"""Calls to agents over gRPC. Insecure on loopback only."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # failures are told in words; read when grpc is imported

import grpc

from coordinator.fleet.addresses import AgentAddress
from coordinator.fleet.calls import SILENT, CallError
from coordinator.fleet.identity.identity import Identity
from coordinator.fleet.identity.tls_probe import PROBE_S, probe
from coordinator.spec.files import security
from protos import agent_pb2_grpc

OPTIONS = (
    ("grpc.max_send_message_length", 17 << 20),
    ("grpc.max_receive_message_length", 17 << 20),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
MOST_PROBES = 64  # at once


class GrpcCalls:
    """`Calls` of a live coordinator: a channel to each agent. identities: by their folder."""

    def __init__(self, addresses: Mapping[str, AgentAddress], identities: Mapping[Path, Identity]) -> None:
        self._addresses, self._identities = addresses, identities
        self._channels = {name: self._channel(name, agent) for name, agent in addresses.items()}
        self._stubs: dict[str, Any] = {
            name: agent_pb2_grpc.AgentStub(channel)  # type: ignore[no-untyped-call]
            for name, channel in self._channels.items()
        }
        self.monotonic, self.sleep = time.monotonic, time.sleep

    def _channel(self, name: str, agent: AgentAddress) -> grpc.Channel:
        if agent.tls is None:
            return grpc.insecure_channel(agent.control, options=OPTIONS)
        own = self._identities[agent.tls]
        credentials = grpc.ssl_channel_credentials(own.ca, own.key, own.cert)
        expected = ("grpc.ssl_target_name_override", security.name_of_node(name))  # who, wherever it is
        return grpc.secure_channel(agent.control, credentials, options=(*OPTIONS, expected))

    def close(self) -> None:
        """All channels."""
        for channel in self._channels.values():
            channel.close()

    def all(self, requests: Mapping[str, Mapping[str, Any]], seconds: float) -> dict[str, dict[str, Any | CallError]]:
        """At once. Nodes that are silent are probed while their calls wait, in the last part of the time."""
        until_s = time.monotonic() + seconds - probe_s(seconds)
        calls = {
            (method, name): getattr(self._stubs[name], method).future(request, timeout=seconds)
            for method, asked in requests.items()
            for name, request in asked.items()
        }
        silent = {name for (_, name), call in calls.items() if _is_silent(call, until_s - time.monotonic())}
        why = self._diagnose(sorted(silent), seconds)
        found: dict[str, dict[str, Any | CallError]] = {method: {} for method in requests}
        for (method, name), call in calls.items():
            found[method][name] = _result(call, why.get(name, ""))
        return found

    def stream(self, method: str, node: str, request: Any, seconds: float) -> Iterator[Any]:
        """As they come."""
        try:
            yield from getattr(self._stubs[node], method)(request, timeout=seconds)
        except grpc.RpcError as error:
            failed = _failed(error)
            if failed.code in SILENT:
                failed.why = self._diagnose([node], seconds).get(node, "")
            raise failed from None

    def _diagnose(self, nodes: Collection[str], seconds: float) -> dict[str, str]:
        """Why nodes cannot be talked to, as far as connections of their own tell; of all at once."""
        if not nodes:
            return {}
        with ThreadPoolExecutor(min(len(nodes), MOST_PROBES)) as pool:
            found = zip(nodes, pool.map(lambda node: self._probe(node, seconds), nodes), strict=True)
            return {node: why for node, why in found if why}

    def _probe(self, node: str, seconds: float) -> str:
        agent = self._addresses[node]
        own = self._identities.get(agent.tls) if agent.tls else None
        found = probe(agent.control, own, security.name_of_node(node), probe_s(seconds))
        return str(found) if found else ""


def probe_s(seconds: float) -> float:
    """How long a probe may take of the time of a call."""
    return min(PROBE_S, seconds / 4)


def _is_silent(call: Any, seconds: float) -> bool:
    """Whether a call has no answer by then."""
    try:
        call.result(max(0.0, seconds))
    except grpc.FutureTimeoutError:
        return True
    except grpc.RpcError as error:
        return _failed(error).code in SILENT
    return False


def _result(call: Any, why: str) -> Any | CallError:
    try:
        return call.result()
    except grpc.RpcError as error:
        return _failed(error, why)


def _failed(error: grpc.RpcError, why: str = "") -> CallError:
    return CallError(error.code().name.lower(), error.details() or "", why)
