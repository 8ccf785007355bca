"""Security of a cluster: parties know each other by certificates over mutual TLS, on loopback not at all.

A certificate names who and not where, so that addresses may change: each has one name, `a.node.shimekiri` for node a,
`coordinator.shimekiri`, or `client.shimekiri` for feeding and listening. An identity is a folder with `ca.pem`,
`cert.pem` and `key.pem`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator.errors import Mistake

if TYPE_CHECKING:
    from coordinator.spec.files.yaml_source import Source

INSECURE, MUTUAL_TLS = "insecure-loopback", "mutual-tls"
CERTIFICATES = "certs"  # where they are unless `certificates:` says otherwise
CA_FILE, CERT_FILE, KEY_FILE = "ca.pem", "cert.pem", "key.pem"
COORDINATOR, CLIENT = "coordinator", "client"  # identities beside the nodes'; folders of these names
NODE_SUFFIX = ".node.shimekiri"
LONGEST_LABEL = 63  # of a name in DNS form
HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?\.?")


def name_of_node(node: str) -> str:
    """The name in the certificate of a node."""
    return node + NODE_SUFFIX


def name_of(identity: str) -> str:
    """The name in the certificate of an identity: a node, or `coordinator`, or `client`."""
    return f"{identity}.shimekiri" if identity in (COORDINATOR, CLIENT) else name_of_node(identity)


def is_loopback(host: str) -> bool:
    """Whether nobody else can reach it. host: an IP address or a name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check(security: object, certificates: str | None, file: Source) -> str:
    """What `security:` says; what is wrong with it, or with `certificates:` beside it, is noted in the file."""
    both = f"write 'security: {MUTUAL_TLS}', or 'security: {INSECURE}' where all addresses are on loopback"
    if security not in (INSECURE, MUTUAL_TLS):
        file.wrong("unknown_security", ("security",), f"security '{security}': is unknown", both)
    if certificates is not None and security == INSECURE:
        text = f"certificates are not used with 'security: {INSECURE}'"
        file.wrong("unused_certificates", ("certificates",), text, f"remove it, or write '{MUTUAL_TLS}' there")
    return str(security)


def check_addresses(addresses: Mapping[str, str], security: str, file: Source) -> None:
    """HOST:PORT, each its own; without encryption only on loopback. addresses: by node. Notes what is wrong."""
    taken: dict[str, str] = {}
    for name, address in addresses.items():
        keys = ("nodes", name, "address")
        host, _, port = address.rpartition(":")
        if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
            file.wrong(
                "no_host_and_port",
                keys,
                f"nodes.{name}.address '{address}' is not HOST:PORT",
                "write it like '127.0.0.1:7700', with a port up to 65535",
            )
            continue
        if int(port) and address in taken:
            file.wrong(
                "address_twice",
                keys,
                f"nodes.{name}.address is also that of node '{taken[address]}'",
                "give each its own port",
            )
        taken[address] = name
        if security == INSECURE and not is_loopback(host):
            mend = f"write 'security: {MUTUAL_TLS}' and run 'coordinator certs {file.path}', or use 127.0.0.1 or ::1"
            file.wrong(
                "insecure_off_loopback",
                keys,
                f"nodes.{name}.address '{host}' is off loopback, where insecure is refused",
                mend,
            )
        elif wrong := _host_problem(host):
            file.add(keys, replace(wrong, text=f"nodes.{name}.address '{host}' {wrong.text}"))


def _host_problem(host: str) -> Mistake | None:
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        text = f"is IPv6, which needs brackets before a port: '[{host}]:7700'"
        return None if is_loopback(host) else Mistake("ipv6_without_brackets", text)
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        numbers = host.replace(".", "").isdigit()
        if numbers or not HOST_NAME.fullmatch(host):
            return Mistake("no_host", "is neither an IP address nor a host name")
        return None
    if address.is_unspecified or address.is_multicast:
        return Mistake(
            "unreachable_host", "is nowhere to connect to", "write the address at which others reach the node"
        )
    return None


def check_names(nodes: Iterable[str], file: Source) -> None:
    """Names that certificates can tell apart: they know no case. Notes what is wrong."""
    seen: dict[str, str] = {}
    for name in nodes:
        keys = ("nodes", name)
        if (other := seen.setdefault(name.lower(), name)) != name:
            file.wrong(
                "names_differ_by_case",
                keys,
                f"node '{name}' differs from node '{other}' by case only, which certificates do not see",
            )
        if name.lower() in (COORDINATOR, CLIENT):
            file.wrong(
                "reserved_name",
                keys,
                f"node '{name}' has the name of the {name.lower()}'s own certificate",
                "rename the node",
            )
        if len(name) > LONGEST_LABEL:
            file.wrong(
                "name_too_long",
                keys,
                f"node '{name}' has {len(name)} letters",
                f"certificates hold at most {LONGEST_LABEL}",
            )


def folder(cluster: Path, certificates: str | None) -> Path:
    """Where a cluster file's certificates are."""
    return cluster.parent / (certificates or CERTIFICATES)
