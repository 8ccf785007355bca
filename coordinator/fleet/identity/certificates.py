"""The cluster's own certificate authority, and the certificates that it signs.

ECDSA P-256 throughout. A certificate has one DNS name, which says who and not where. The CA may sign names under
`shimekiri` alone, so that a machine that comes to trust it for anything else is not in its hands, and has a subject of
its own, so that two of them are not taken for each other.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from coordinator.spec.files.security import CLIENT, COORDINATOR, name_of

YEAR = timedelta(days=365)
CA_LASTS, LASTS = 10 * YEAR, 2 * YEAR
# A device without a battery for its clock starts where it was last on, or when its image was made: often years behind.
# An early beginning costs nothing, as nobody had the key then; a late one locks the device out until it has the time.
SET_BACK = 5 * YEAR
DOMAIN = "shimekiri"
ASKED_FOR = {
    ExtensionOID.SUBJECT_KEY_IDENTIFIER: "Subject Key Identifier",
    ExtensionOID.AUTHORITY_KEY_IDENTIFIER: "Authority Key Identifier",
    ExtensionOID.BASIC_CONSTRAINTS: "Basic Constraints",
    ExtensionOID.KEY_USAGE: "Key Usage",
    ExtensionOID.EXTENDED_KEY_USAGE: "Extended Key Usage",
}
NOT_OF_A_CA = {ExtensionOID.AUTHORITY_KEY_IDENTIFIER, ExtensionOID.EXTENDED_KEY_USAGE}


@dataclass(frozen=True)
class Ca:
    """A CA that can sign."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def name(self) -> str:
        """Its subject's common name."""
        return str(self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)

    @property
    def pem(self) -> bytes:
        """Its certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True)
class Issued:
    """A certificate with its key, in PEM."""

    certificate: x509.Certificate
    cert: bytes
    key: bytes


class UnusableError(ValueError):
    """A certificate or key that cannot be used; the text says why."""


def new_ca(now: datetime) -> tuple[Ca, Issued]:
    """A CA with a new key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Shimekiri CA {secrets.token_hex(4)}")])
    usage = _usage(key_cert_sign=True, crl_sign=True)
    constraints = x509.NameConstraints([x509.DNSName(DOMAIN)], None)
    own = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    builder = (
        _builder(name, name, key.public_key(), now - SET_BACK, now + CA_LASTS)
        .add_extension(own, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(constraints, critical=True)
    )
    certificate = builder.sign(key, hashes.SHA256())
    return Ca(certificate, key), _issued(certificate, key)


def issue(ca: Ca, identity: str, now: datetime) -> Issued:
    """A certificate with a new key for a node, or for `coordinator` or `client`; it ends no later than the CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    organisation = identity if identity in (COORDINATOR, CLIENT) else "node"
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, f"Shimekiri {organisation}"),
            x509.NameAttribute(NameOID.COMMON_NAME, identity),
        ]
    )
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if organisation == "node":
        uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
    begins, ends = ca.certificate.not_valid_before_utc, min(now + LASTS, ca.certificate.not_valid_after_utc)
    issuer_key = ca.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _builder(ca.certificate.subject, subject, key.public_key(), begins, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name_of(identity))]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key), critical=False)
    )
    return _issued(builder.sign(ca.key, hashes.SHA256()), key)


def read_ca(cert: bytes, key: bytes, now: datetime) -> Ca:
    """Raises UnusableError."""
    certificate, private = _certificate(cert, "ca.pem"), _key(key, "ca.key")
    if certificate.public_key() != private.public_key():
        raise UnusableError("ca.key is not the key of ca.pem")
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        if not constraints.ca or not certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME):
            raise UnusableError("ca.pem is no certificate of a CA")
    except (x509.ExtensionNotFound, ValueError) as error:
        raise UnusableError("ca.pem is no certificate of a CA") from error
    if certificate.not_valid_after_utc <= now:
        raise UnusableError(f"ca.pem has expired on {certificate.not_valid_after_utc:%Y-%m-%d}")
    return Ca(certificate, private)


def check(ca: Ca, identity: str, files: tuple[bytes, bytes, bytes]) -> x509.Certificate:
    """The certificate of an identity that is there. files: ca.pem, cert.pem, key.pem. Raises UnusableError."""
    certificate, private = _certificate(files[1], "cert.pem"), _key(files[2], "key.pem")
    if certificate.public_key() != private.public_key():
        raise UnusableError("key.pem is not the key of cert.pem")
    try:
        certificate.verify_directly_issued_by(ca.certificate)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise UnusableError("cert.pem is not of this CA") from error
    if _certificate(files[0], "ca.pem") != ca.certificate:
        raise UnusableError("ca.pem is not that of this CA")
    if _names(certificate) != [name_of(identity)]:
        raise UnusableError(f"cert.pem is of '{', '.join(_names(certificate))}', not of {name_of(identity)}")
    return certificate


def missing_extensions(certificate: x509.Certificate) -> list[str]:
    """What RFC 5280 asks for and is not in it: strict verifiers refuse it then."""
    there = {extension.oid for extension in certificate.extensions}
    own = certificate.issuer == certificate.subject  # a CA that names itself may leave out who has signed it
    return [name for oid, name in ASKED_FOR.items() if oid not in there and not (own and oid in NOT_OF_A_CA)]


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return names.get_values_for_type(x509.DNSName)


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey, begins: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _issued(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Issued:
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Issued(certificate, certificate.public_bytes(pem), private)


def _certificate(pem: bytes, name: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise UnusableError(f"{name} is no certificate in PEM") from error


def _key(pem: bytes, name: str) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError) as error:  # TypeError: it asks for a password
        raise UnusableError(f"{name} is no private key in PEM, or has a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UnusableError(f"{name} is no key for ECDSA")
    return key


def now() -> datetime:
    """To the second, as certificates have it."""
    return datetime.now(UTC).replace(microsecond=0)
