"""Diagnoses errors of OpenSSL, in words that one can act on."""

import ssl
import time
from pathlib import Path

from node_agent.error_codes import Code

EXPIRED, NOT_YET = 10, 9  # X509_V_ERR_...
UNKNOWN_CA = frozenset({2, 18, 19, 20, 21, 7})  # no issuer, self-signed, a signature that is not the CA's
HOST, PURPOSE = 62, 26

ALERTS = (  # of the other end, by a part of OpenSSL's reason
    ("UNKNOWN_CA", "its ca.pem is not the one that signed {mine}: copy both from one `coordinator certs`"),
    ("DECRYPT_ERROR", "its ca.pem is not the one that signed {mine}: copy both from one `coordinator certs`"),
    (
        "CERTIFICATE_EXPIRED",
        "by its clock {mine} has expired: run `coordinator certs CLUSTER.yaml --renew`, or set its clock",
    ),
    ("BAD_CERTIFICATE", "it does not accept {mine}: if it is new, the other clock may be behind, see there"),
    ("UNSUPPORTED_CERTIFICATE", "{mine} may not be used in this role"),
    ("CERTIFICATE_REQUIRED", "it demands a certificate"),
    ("PROTOCOL_VERSION", "it does not speak TLS 1.3"),
)


def not_verified(error: ssl.SSLError, folder: Path) -> tuple[Code, str, str]:
    """Why a certificate that was shown does not pass here: the mistake's code, text and mend; folder: of this end's
    identity."""
    code = getattr(error, "verify_code", 0)
    if code in {EXPIRED, NOT_YET}:
        now = f"by this machine's clock, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC"
        if code == EXPIRED:
            return (
                "expired",
                f"has expired, {now}",
                "run `coordinator certs CLUSTER.yaml --renew`, or set this clock if it is wrong",
            )
        return (
            "not_valid_yet",
            f"is not yet valid, {now}",
            "set this clock (a Pi without network time starts in the past)",
        )
    if code in UNKNOWN_CA:
        mend = "it is of another cluster, or one of both was made anew: copy both from one `coordinator certs`"
        return "of_another_ca", f"was not signed by {folder / 'ca.pem'}", mend
    texts: dict[int, tuple[Code, str, str]] = {
        HOST: ("other_name", "is of somebody else than is expected there", "check the addresses"),
        PURPOSE: ("other_purpose", "may not be used in this role", "agents need a node's certificate"),
    }
    said = getattr(error, "verify_message", "") or error.reason or error
    return texts.get(
        code, ("not_verified", f"is not accepted: {said}", "make identities anew with `coordinator certs`")
    )


def no_tls13(error: Exception) -> tuple[str, str]:
    """Why there is no TLS here at all, and the mend."""
    said = getattr(error, "reason", None) or error
    mend = "use OpenSSL 3.0 or later, with an openssl.cnf that allows TLS 1.3, P-256 and ECDSA"
    return f"this Python's OpenSSL ({ssl.OPENSSL_VERSION}) does no TLS 1.3 of a cluster ({said})", mend


def alert_text(error: ssl.SSLError, mine: str) -> str:
    """What the other end has against this one's certificate `mine`; empty: that is not what the error is about."""
    reason = error.reason or ""
    if "ALERT" not in reason:
        return ""
    for part, text in ALERTS:
        if part in reason:
            return text.format(mine=mine)
    return f"it refuses this end ({reason.lower().replace('_', ' ')})"
