"""The name in a certificate, and its holder's rights here. Loads no OpenSSL: an agent without TLS pays nothing for it.

A certificate says who, not where, so that addresses may change: one DNS name in `subjectAltName`, which is
`NAME.node.shimekiri` for a node, `coordinator.shimekiri`, or `client.shimekiri` for feeds and listeners.
"""

from pathlib import Path

from node_agent.problems import ProblemError

NODE = ".node.shimekiri"
COORDINATOR, CLIENT = "coordinator.shimekiri", "client.shimekiri"
CA, CERTIFICATE, KEY = "ca.pem", "cert.pem", "key.pem"  # in the folder of an identity
MAKE = "make identities with `coordinator certs CLUSTER.yaml` and give the folder of this one"


class TlsError(ProblemError, ValueError):
    """An identity that cannot be used: what is wrong, where, and the mend."""


def node_of(place: str) -> str:
    """The node that a place belongs to: `a.1`, a further core of node `a`, has the certificate of `a`."""
    name, dot, core = place.rpartition(".")
    return name if dot and name and core.isascii() and core.isdigit() else place


def certificate_name(place: str) -> str:
    """The name in the certificate of that place's node."""
    return node_of(place) + NODE


def node_name(name: str) -> str:
    """The node that a certificate's name stands for; empty: it is none's."""
    return name.removesuffix(NODE) if name.endswith(NODE) else ""


def told(name: str) -> str:
    """For people: `node a`, `the coordinator`, `a client`."""
    if node := node_name(name):
        return f"node {node}"
    return {COORDINATOR: "the coordinator", CLIENT: "a client"}.get(name, f"{name!r}, which is nobody here")


def why_not(peer: str, name: str) -> str:
    """Why the holder of a certificate of that name may not say Hello as `peer`; empty: it may.

    peer: `node:P`, only P's node; `source:...` and `sink:...`, clients, the coordinator and every node.
    """
    kind, _, place = peer.partition(":")
    if kind == "node":
        if place and node_name(name) == node_of(place):
            return ""
        return f"it says that it is {peer}, and its certificate is of {told(name)}"
    if name in {CLIENT, COORDINATOR} or node_name(name):
        return ""
    return f"its certificate is of {told(name)}: sources and sinks need one of a client, of the coordinator or a node"


def pem(folder: Path, name: str) -> bytes:
    """One file of an identity. Raises TlsError."""
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise unreadable(folder / name, error) from None


def unreadable(path: Path, error: OSError) -> TlsError:
    """What to say of a file of an identity that cannot be read."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return TlsError("no_file", "no such file", f"an identity has {CA}, {CERTIFICATE} and {KEY}: {MAKE}", file=path)
    mend = "the user who runs this must own it"
    return TlsError("unreadable", f"cannot be read ({error.strerror})", mend, file=path)
