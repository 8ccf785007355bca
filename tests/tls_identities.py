"""Identities for tests: a certificate authority and folders with ca.pem, cert.pem, key.pem."""

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)
NODES = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
OTHERS = [ExtendedKeyUsageOID.CLIENT_AUTH]
USAGE = (  # of a key, in the order of KeyUsage
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


class Authority:
    """One CA; `make` writes folders. bare: its certificates lack what RFC 5280 asks for, which keys and what for."""

    def __init__(self, folder: Path, bare: bool = False) -> None:
        self.folder, self._bare = folder, bare
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shimekiri test")])
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(self._name, self._name, self._key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - 400 * DAY).not_valid_after(now + 400 * DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._certificate = self._sign(builder, self._key.public_key(), ca=True)

    def _sign(self, builder: x509.CertificateBuilder, key: ec.EllipticCurvePublicKey, ca: bool) -> x509.Certificate:
        if not self._bare:
            uses = {"key_cert_sign", "crl_sign"} if ca else {"digital_signature"}
            usage = [name in uses for name in USAGE]
            builder = builder.add_extension(x509.KeyUsage(*usage), critical=True)
            builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
            builder = builder.add_extension(authority, critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def node(self, name: str, folder: str = "", days: tuple[float, float] = (-1, 365)) -> Path:
        """The identity of a node."""
        return self.make(f"{name}.node.shimekiri", folder or name, NODES, days)

    def client(self, days: tuple[float, float] = (-1, 365)) -> Path:
        """Of feeds and listeners."""
        return self.make("client.shimekiri", "client", OTHERS, days)

    def coordinator(self) -> Path:
        """Of the coordinator."""
        return self.make("coordinator.shimekiri", "coordinator", OTHERS)

    def make(
        self, name: str, folder: str, uses: list[x509.ObjectIdentifier], days: tuple[float, float] = (-1, 365),
        names: x509.ExtensionType | None = None,
    ) -> Path:  # fmt: skip
        """Any; days: validity from now; names: subjectAltName, if it is not the name alone."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now + days[0] * DAY).not_valid_after(now + days[1] * DAY)
        named = names or x509.SubjectAlternativeName([x509.DNSName(name)])
        builder = builder.add_extension(named, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        made, path = self._sign(builder, key.public_key(), ca=False), self.folder / folder
        path.mkdir(parents=True)
        pem = serialization.Encoding.PEM
        (path / "ca.pem").write_bytes(self._certificate.public_bytes(pem))
        (path / "cert.pem").write_bytes(made.public_bytes(pem))
        (path / "key.pem").touch(0o600)
        (path / "key.pem").write_bytes(
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return path
