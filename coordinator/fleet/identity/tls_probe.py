"""Diagnosis of a connection to an agent that fails, in a line: gRPC says of every handshake only that it failed.

It connects once more, with the standard library, which says what it saw. With TLS 1.3 a client has finished before the
other end has looked at its certificate, so the probe goes on until the first bytes, or an alert, come back.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from coordinator.fleet.addresses import split
from coordinator.fleet.identity.identity import EXPIRED, NOT_YET, UNKNOWN_CA, Identity
from coordinator.spec.files.security import NODE_SUFFIX

PROBE_S = 1.5
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # of HTTP/2: preface, no settings
PURPOSE = 26  # of OpenSSL's verify codes
AGAIN = "both need certificates of one 'coordinator certs': copy the node's folder there again"
PLAIN = "start the agent with --tls and the node's folder"


@dataclass(frozen=True)
class Finding:
    """What is wrong, and what to do. wrong None: nothing is, as far as the probe could see."""

    wrong: str | None
    mend: str = ""

    def __bool__(self) -> bool:
        return self.wrong is not None

    def __str__(self) -> str:
        return f"{self.wrong}; {self.mend}" if self.mend else str(self.wrong)


FINE = Finding(None)


def probe(address: str, identity: Identity | None, name: str, seconds: float = PROBE_S) -> Finding:
    """Why the agent at host:port cannot be talked to. identity: ours, None: without TLS. name: what its certificate
    has to say."""
    host, port = split(address)
    try:
        with socket.create_connection((host, port), seconds) as connection:
            return _without(connection) if identity is None else _with(connection, identity, name)
    except socket.gaierror:
        return Finding(f"host '{host}' is unknown here", "write an IP address, or make the name known (/etc/hosts)")
    except TimeoutError:
        return Finding(f"nothing answers at {address}", "is the machine on, in this network, and its firewall open?")
    except ConnectionRefusedError:
        return Finding("no agent is running there", "start node-agent on that machine") if identity else FINE
    except OSError as error:
        return Finding(f"{address} cannot be reached: {(error.strerror or str(error)).lower()}", "check the address")


def _without(connection: socket.socket) -> Finding:
    """Whether TLS is spoken there, which explains that calls without it fail."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        with context.wrap_socket(connection):
            pass
    except OSError:
        return FINE
    missing = "TLS is spoken there, and addresses.json has no 'tls' with our certificate"
    return Finding(missing, "write 'security: mutual-tls' in cluster.yaml and run 'coordinator addresses cluster.yaml'")


def _with(connection: socket.socket, identity: Identity, name: str) -> Finding:
    shaken = False
    try:
        with identity.context().wrap_socket(connection) as secure:
            if other := _wrong_name(secure, name):
                return other
            shaken = True
            secure.sendall(HELLO)
            return FINE if secure.recv(1) else _refused(identity)
    except ssl.SSLCertVerificationError as error:
        return _theirs(error, identity)
    except OSError as error:
        return _refused(identity) if shaken else _ended(error, identity)


def _wrong_name(secure: ssl.SSLSocket, name: str) -> Finding | None:
    certificate = secure.getpeercert() or {}
    alternatives = certificate.get("subjectAltName", ())
    names = [str(entry[1]) for entry in alternatives if entry[0] == "DNS"]
    if name.lower() in (each.lower() for each in names):
        return None
    there = [each.removesuffix(NODE_SUFFIX) for each in names if each.endswith(NODE_SUFFIX)]
    who = f"node {there[0]}'s" if there else f"'{', '.join(names)}'"
    return Finding(
        f"the certificate there is {who}, not node {name.removesuffix(NODE_SUFFIX)}'s", "correct the address"
    )


def _theirs(error: ssl.SSLCertVerificationError, identity: Identity) -> Finding:
    """Their certificate does not convince us."""
    code = error.verify_code
    if code == EXPIRED:
        mend = "'coordinator certs cluster.yaml --renew', then copy the folder there; or this machine's clock is wrong"
        return Finding("the agent's certificate has expired", mend)
    if code == NOT_YET:
        return Finding("the agent's certificate is not valid yet", "set this machine's clock")
    if code == PURPOSE:
        return Finding("the certificate there is no node's", "start the agent with --tls and the node's own folder")
    if code in UNKNOWN_CA:
        return Finding(f"the agent's certificate is of another CA than {identity.folder}", AGAIN)
    return Finding(f"the agent's certificate is refused: {error.verify_message}", AGAIN)


def _alert(reason: str, identity: Identity) -> Finding:
    """What the other end sent instead of going on."""
    if "PROTOCOL_VERSION" in reason:
        return Finding("TLS 1.3 is not spoken there", "is it an agent of this release?")
    if "ALERT" in reason:
        said = reason.partition("ALERT_")[2].lower().replace("_", " ")
        return Finding(f"the agent refuses {identity.folder} ({said})", AGAIN)
    return Finding("TLS is not spoken there", PLAIN)


def _refused(identity: Identity) -> Finding:
    """It ended when it had seen our certificate, which is in order by itself; gRPC's servers say no more."""
    why = "its ca.pem is of another CA, or its clock is wrong"
    return Finding(f"the agent does not trust {identity.folder}: {why}", AGAIN)


def _ended(error: OSError, identity: Identity) -> Finding:
    """The handshake was not finished."""
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return _alert(error.reason or "", identity)
    if isinstance(error, TimeoutError):
        return Finding("what is there does not finish a TLS handshake", "is it an agent, started with --tls?")
    return Finding("the connection ended before TLS was agreed on", PLAIN)
