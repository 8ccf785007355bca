"""Finds the address of a node: an address as given, or a node's name in the addresses.json of `coordinator up`."""

import json
from collections.abc import Sequence
from pathlib import Path

from node_agent.client.connection import parse_address
from node_agent.operators.codecs import Codecs
from node_agent.operators.registry import Registry
from node_agent.problems import ProblemError

DEFAULT = Path("addresses.json")


_WRITER = "`coordinator up` writes it"


class InputError(ProblemError):
    """Bad arguments or input, exit code 2."""


def addresses_of(node: str, given: Path | None) -> Path | None:
    """The file that a node's name is looked up in: as given, else addresses.json here; None: there is none."""
    if given is None and ":" not in node and DEFAULT.is_file():
        return DEFAULT
    return given


def data_address(node: str, addresses: Path | None) -> str:
    """host:port of the node's data socket. node: host:port, or a name in that file. Raises InputError."""
    if ":" in node:
        try:
            parse_address(node)
        except ValueError as error:
            raise InputError("not_an_address", str(error), subject="--node") from None
        return node
    if addresses is None:
        text = f"node {node!r}: give host:port, or a name with --addresses FILE"
        raise InputError("no_addresses", text, f"{DEFAULT} is not here", subject=node)
    nodes = _nodes(addresses)
    if node not in nodes:
        there = f"there are: {', '.join(sorted(nodes))}"
        raise InputError("unknown_node", f"has no node {node!r}", there, subject=node, file=addresses)
    entry = nodes[node]
    address = entry.get("data") if isinstance(entry, dict) else None
    try:
        parse_address(address if isinstance(address, str) else "")
    except ValueError:
        raise InputError(
            "not_an_address",
            f"nodes.{node} has no 'data' with host:port",
            "`coordinator up` writes this file",
            subject=f"nodes.{node}.data",
            file=addresses,
        ) from None
    return str(address)


def identity_folder(tls: Path | None, addresses: Path | None) -> Path | None:
    """The identity to connect with: as given, else what that file names; None: without TLS. Raises InputError."""
    if tls is not None or addresses is None:
        return tls
    values = _values(addresses)
    named = values.get("tls") if isinstance(values, dict) else None
    if named is None:
        return None
    if not isinstance(named, str) or not named:
        mend = "`coordinator up` writes this file"
        raise InputError("wrong_shape", "'tls' is not the folder of an identity", mend, subject="tls", file=addresses)
    return addresses.parent / named


def _nodes(path: Path) -> dict[str, object]:
    values = _values(path)
    nodes = values.get("nodes") if isinstance(values, dict) else None
    if not isinstance(nodes, dict) or not nodes:
        raise InputError("no_nodes", "names no nodes", _WRITER, subject="nodes", file=path)
    return nodes


def _values(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        text = f"--addresses {path}: cannot be read ({error.strerror})"
        raise InputError("unreadable", text, _WRITER, subject="--addresses") from error
    except (ValueError, RecursionError) as error:
        raise InputError("not_json", f"is not JSON ({error})", _WRITER, file=path) from error


def client_codecs(operators: Sequence[Path]) -> Codecs:
    """What is installed here, and what these files add. Raises InputError, OperatorError."""
    for file in operators:
        if not file.is_file():
            raise InputError("no_file", f"--operators {file}: no such file", subject="--operators")
    return Registry(operators).codecs if operators else Codecs()
