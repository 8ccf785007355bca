"""Finds the address of a node: an address as given, or a node's name in the addresses.json of `coordinator up`."""

import json
from collections.abc import Sequence
from pathlib import Path

from node_agent.client.connection import parse_address
from node_agent.operators.codecs import Codecs
from node_agent.operators.registry import Registry

DEFAULT = Path("addresses.json")


class InputError(Exception):
    """Bad arguments or input, exit code 2; the message says where, what is wrong, and the mend."""


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
            raise InputError(str(error)) from None
        return node
    if addresses is None:
        raise InputError(f"node {node!r}: give host:port, or a name with --addresses FILE; {DEFAULT} is not here")
    nodes = _nodes(addresses)
    if node not in nodes:
        raise InputError(f"{addresses}: has no node {node!r}; there are: {', '.join(sorted(nodes))}")
    entry = nodes[node]
    address = entry.get("data") if isinstance(entry, dict) else None
    try:
        parse_address(address if isinstance(address, str) else "")
    except ValueError:
        text = f"{addresses}: nodes.{node} has no 'data' with host:port; `coordinator up` writes this file"
        raise InputError(text) from None
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
        raise InputError(f"{addresses}: 'tls' is not the folder of an identity; `coordinator up` writes this file")
    return addresses.parent / named


def _nodes(path: Path) -> dict[str, object]:
    values = _values(path)
    nodes = values.get("nodes") if isinstance(values, dict) else None
    if not isinstance(nodes, dict) or not nodes:
        raise InputError(f"{path}: names no nodes; `coordinator up` writes it")
    return nodes


def _values(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        text = f"--addresses {path}: cannot be read ({error.strerror}); `coordinator up` writes it"
        raise InputError(text) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}); `coordinator up` writes it") from error


def client_codecs(operators: Sequence[Path]) -> Codecs:
    """What is installed here, and what these files add. Raises InputError, OperatorError."""
    for file in operators:
        if not file.is_file():
            raise InputError(f"--operators {file}: no such file")
    return Registry(operators).codecs if operators else Codecs()
