"""An identity: a folder with `ca.pem`, `cert.pem` and `key.pem`, checked, and the contexts that are made of it.

`load` makes the folder shake hands with itself in memory: chain, dates, key and name are then judged by the code that
will judge them at the other end, and nothing of a certificate is parsed here.
"""

import ssl
import stat
import time
from pathlib import Path
from typing import Any, NamedTuple

from node_agent.tls.diagnosis import no_tls13, not_verified
from node_agent.tls.names import CA, CERTIFICATE, KEY, MAKE, TlsError, node_name, pem, told, unreadable

DAY_S, SOON_DAYS = 86_400, 30  # with fewer days left, one is told
# Of the key exchange, and no other: strangers choose, and some take OpenSSL ten times as long and more. This one is in
# every TLS 1.3, and every Python can set it; X25519, which is not set by Python 3.11.2, took as long.
GROUP = "prime256v1"
# Of OpenSSL 3.2 and later, without a name in Python: certificates come as long as they are, so that their length on the
# wire bounds the work that they make.
NO_COMPRESSED_CERTIFICATES = 1 << 33


class Identity(NamedTuple):
    """What a folder holds. until_s: seconds since 1970, when its certificate expires; loose: who else may use the
    key."""

    folder: Path
    name: str
    until_s: float
    loose: str = ""

    @property
    def told(self) -> str:
        """Whose it is, and until when: for people."""
        day = time.strftime("%Y-%m-%d", time.gmtime(self.until_s))
        return f"{self.folder} is of {told(self.name)} and valid until {day}"

    @property
    def days_left(self) -> int:
        """Whole days that the certificate is valid from now on."""
        return int((self.until_s - time.time()) // DAY_S)


def load(folder: Path, node: str = "") -> Identity:
    """Check all that can go wrong with it. node: that it must be of. Raises TlsError."""
    loose = _permissions(folder)
    name, until_s = _examine(folder)
    if node and node_name(name) != node:
        what = f"is the identity of {told(name)}, not of node {node}"
        raise TlsError("other_node", what, f"give the folder of {node}", subject=node, file=folder)
    if node:
        _shake(server_context(folder), client_context(folder, named=True), folder, name)
    return Identity(folder, name, until_s, loose)


def server_context(folder: Path) -> ssl.SSLContext:
    """For the side that accepts: TLS 1.3, a certificate is demanded. No tickets: a session is not resumed, so that
    everyone is judged anew. Raises TlsError."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, folder)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(folder: Path, named: bool) -> ssl.SSLContext:
    """For the side that dials. named: the name is known beforehand and is verified in the handshake; else the caller
    looks at the name when it is over. Raises TlsError."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, folder)
    context.check_hostname = named
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def name_in(certificate: "dict[str, Any] | None") -> str:
    """Its one DNS name; empty where it has none or several, and is nobody's then."""
    names = [value for kind, value in (certificate or {}).get("subjectAltName", ()) if kind == "DNS"]
    return str(names[0]) if len(names) == 1 else ""


def lax(folder: Path) -> str:
    """What verifiers that keep to RFC 5280 have against it; empty: nothing. Agents do not ask for that much; programs
    that read their metrics may. Raises TlsError."""
    server = server_context(folder)
    server.verify_flags |= ssl.VERIFY_X509_STRICT
    client = client_context(folder, named=False)
    client.verify_mode = ssl.CERT_NONE
    try:
        _handshake(server, client, None)
    except ssl.SSLError as error:
        return str(getattr(error, "verify_message", "") or error.reason or error).lower()
    return ""


def _context(protocol: int, folder: Path) -> ssl.SSLContext:
    context = _tls13(protocol)
    try:
        context.load_verify_locations(cafile=folder / CA)
    except ssl.SSLError:
        raise TlsError("no_certificate", "holds no certificate", MAKE, file=folder / CA) from None
    except OSError as error:
        raise unreadable(folder / CA, error) from None
    try:
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY, password=lambda: b"")
    except ssl.SSLError as error:
        raise _no_pair(folder, error) from None
    except OSError as error:
        missing = folder / (KEY if (folder / CERTIFICATE).is_file() else CERTIFICATE)
        raise unreadable(missing, error) from None
    return context


def _tls13(protocol: int) -> ssl.SSLContext:
    """A context that knows nobody yet. Raises TlsError where OpenSSL, as it is built and set up here, has no such."""
    try:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_ecdh_curve(GROUP)
        if ssl.OPENSSL_VERSION_INFO >= (3, 2):
            context.options |= NO_COMPRESSED_CERTIFICATES
        if protocol == ssl.PROTOCOL_TLS_SERVER:
            context.num_tickets = 0
    except (ssl.SSLError, ValueError, AttributeError, NotImplementedError) as error:
        raise TlsError("no_tls13", *no_tls13(error)) from None
    return context


def _no_pair(folder: Path, error: ssl.SSLError) -> TlsError:
    if error.reason == "KEY_VALUES_MISMATCH":
        what = f"is not the key of {CERTIFICATE} beside it"
        return TlsError("other_key", what, "copy both from one folder", file=folder / KEY)
    if b"ENCRYPTED" in pem(folder, KEY):
        what = "is encrypted, and nobody is there to be asked"
        return TlsError("encrypted", what, "write it without a password", file=folder / KEY)
    what = f"{CERTIFICATE} or {KEY} cannot be read as PEM ({error.reason or error})"
    return TlsError("not_pem", what, MAKE, file=folder)


def _permissions(folder: Path) -> str:
    """What its group may do with the key. Raises TlsError where everybody may read it."""
    path = folder / KEY
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError:  # from a file: a zero byte, or half a character
        raise TlsError("bad_name", "is no name that a folder can have", MAKE, file=repr(str(folder))) from None
    if mode & 0o007:
        what = f"everybody on this machine may use it (mode {mode:o})"
        raise TlsError("open_to_all", what, f"chmod 600 {path}", file=path)
    return f"{path}: its group may use it (mode {mode:o})" if mode & 0o070 else ""


def _examine(folder: Path) -> tuple[str, float]:
    """Name and end of the certificate, as another one's server sees it."""
    client = client_context(folder, named=False)
    client.verify_mode = ssl.CERT_NONE
    certificate = _shake(server_context(folder), client, folder)
    name = name_in(certificate)
    if not name:
        raise TlsError("no_name", "must name one DNS name in subjectAltName", MAKE, file=folder / CERTIFICATE)
    return name, float(ssl.cert_time_to_seconds(certificate["notAfter"]))


def _shake(server: ssl.SSLContext, client: ssl.SSLContext, folder: Path, name: str | None = None) -> dict[str, Any]:
    """A handshake in memory; the client's certificate as the server sees it. Raises TlsError."""
    try:
        return _handshake(server, client, name)
    except ssl.SSLError as error:
        if error.reason == "BAD_SIGNATURE":
            what = f"is damaged: it does not sign for {CERTIFICATE} beside it"
            raise TlsError("damaged", what, MAKE, file=folder / KEY) from None
        if not isinstance(error, ssl.SSLCertVerificationError):
            raise TlsError("no_tls13", *no_tls13(error)) from None
        raise TlsError(*not_verified(error, folder), file=folder / CERTIFICATE) from None


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str | None) -> dict[str, Any]:
    """Raises SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for end in (*ends, *ends):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return ends[1].getpeercert() or {}
