"""An identity as this side uses it: a folder with ca.pem, cert.pem and key.pem, read and found to belong together."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.errors import BadInputError, CoordinatorError, Mistake, Problem, bad_file
from coordinator.spec.files.security import CA_FILE, CERT_FILE, KEY_FILE

EXPIRED, NOT_YET = 10, 9  # of OpenSSL's verify codes
UNKNOWN_CA = frozenset({2, 7, 18, 19, 20, 21})  # issuer not there, or of that name with another key, or self-signed
LARGEST_FILE = 1 << 20
MEND = "'coordinator certs cluster.yaml' makes it"


@dataclass(frozen=True)
class Identity:
    """PEM as read; the key stays out of what is printed."""

    folder: Path
    ca: bytes = field(repr=False)
    cert: bytes = field(repr=False)
    key: bytes = field(repr=False)

    def context(self) -> ssl.SSLContext:
        """For a client: TLS 1.3, the other end's chain verified, its name left to the caller. Raises BadInputError
        where certificate and key do not belong together or are none, CoordinatorError where there is no TLS 1.3."""
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.set_alpn_protocols(["h2"])
        except (ssl.SSLError, ValueError, NotImplementedError) as error:
            raise _no_tls13(error) from error
        context.check_hostname = False
        try:
            context.load_verify_locations(self.folder / CA_FILE)
        except (ssl.SSLError, OSError) as error:
            raise bad_file(self.folder / CA_FILE, "no_certificate", "is no certificate in PEM", MEND) from error
        try:
            context.load_cert_chain(self.folder / CERT_FILE, self.folder / KEY_FILE, password=lambda: b"")
        except (ssl.SSLError, OSError, ValueError) as error:
            wrong = f"{CERT_FILE} and {KEY_FILE} are no certificate with its key"
            raise bad_file(self.folder, "no_key_pair", f"{wrong} ({_reason(error)})", MEND) from error
        return context


def load(folder: Path) -> Identity:
    """Reads and checks it. Raises BadInputError that says which file is wrong, and how."""
    try:
        there = folder.is_dir()
    except OSError:  # a name that is too long, or a folder above it that is closed
        there = False
    if not there:
        raise bad_file(folder, "no_identity", "is no folder with ca.pem, cert.pem and key.pem", MEND)
    found = {}
    for name in (CA_FILE, CERT_FILE, KEY_FILE):
        try:
            with (folder / name).open("rb") as file:
                found[name] = file.read(LARGEST_FILE)
        except OSError as error:
            raise bad_file(folder / name, "unreadable", f"cannot be read: {error.strerror or error}", MEND) from error
    identity = Identity(folder, found[CA_FILE], found[CERT_FILE], found[KEY_FILE])
    _check(folder, identity.context())
    return identity


def _check(folder: Path, client: ssl.SSLContext) -> None:
    """Let it shake hands with itself in memory, so that its own chain and dates are judged as an agent will judge
    them: an agent that refuses a certificate does not say why."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / CERT_FILE, folder / KEY_FILE)
    server.load_verify_locations(folder / CA_FILE)
    server.verify_mode = ssl.CERT_REQUIRED
    client.verify_mode = ssl.CERT_NONE
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(down, up), server.wrap_bio(up, down, server_side=True)
    for end in (*ends, *ends):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError as error:
            if error.verify_code in (EXPIRED, NOT_YET):
                mend = "'coordinator certs cluster.yaml --renew' makes it anew"
                mistake = Mistake("expired", "has expired, by this machine's clock", mend)
                if error.verify_code == NOT_YET:
                    mistake = Mistake("not_valid_yet", "is not valid yet, by this machine's clock", mend)
            elif error.verify_code in UNKNOWN_CA:
                mend = "copy the whole folder of 'coordinator certs'"
                mistake = Mistake("of_another_ca", f"is not of the CA in {CA_FILE} beside it", mend)
            else:
                mistake = Mistake("unusable_identity", f"cannot be used: {error.verify_message}", MEND)
            raise BadInputError([Problem(mistake, str(folder / CERT_FILE))]) from error
        except ssl.SSLError as error:
            raise _no_tls13(error) from error


def _no_tls13(error: Exception) -> CoordinatorError:
    what = f"this Python's OpenSSL ({ssl.OPENSSL_VERSION}) does no TLS 1.3 of a cluster ({_reason(error)})"
    return CoordinatorError(
        Mistake("no_tls13", what, "use OpenSSL 3.0 or later, with an openssl.cnf that allows TLS 1.3, P-256 and ECDSA")
    )


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(reason).lower().replace("_", " ")
