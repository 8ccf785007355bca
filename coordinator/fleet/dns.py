"""Name resolution: the IP addresses that routes and addresses.json carry."""

from __future__ import annotations

import ipaddress
import socket

import psutil

from coordinator.errors import CoordinatorError, Mistake


class UnknownHostError(CoordinatorError):
    """A name that leads nowhere from here."""


def resolve(host: str) -> list[str]:
    """IP addresses of a host name or address, IPv4 first: that is what small devices have set up. Addresses that mean
    something on one link only are left out, since routes have no place to name the link. Raises UnknownHostError."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = f"host '{host}' is unknown here ({getattr(error, 'strerror', None) or error})"
        raise UnknownHostError(
            Mistake("unknown_host", why, "write its IP address, or make the name known, as in /etc/hosts", host)
        ) from error
    addresses = dict.fromkeys(str(entry[4][0]) for entry in found)
    usable = [address for address in addresses if not ipaddress.ip_address(address.partition("%")[0]).is_link_local]
    if not usable:
        only = f"host '{host}' has link-local addresses only here ({', '.join(addresses)}), which others cannot use"
        raise UnknownHostError(
            Mistake("link_local_host", only, "write an address of its network in cluster.yaml", host)
        )
    return sorted(usable, key=lambda address: ":" in address)


def is_here(address: str) -> bool:
    """Whether this machine has that IP address."""
    wanted = ipaddress.ip_address(address)
    if wanted.is_loopback:
        return True
    own = (entry.address.partition("%")[0] for entries in psutil.net_if_addrs().values() for entry in entries)
    return any(_same(each, wanted) for each in own)


def _same(text: str, wanted: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return ipaddress.ip_address(text) == wanted
    except ValueError:  # a hardware address
        return False
