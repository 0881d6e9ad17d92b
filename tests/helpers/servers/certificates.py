"""A certificate authority, and certificates of a server and a client, created for each run."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Certificates", "write_certificates"]


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files of the authority, and of its certificates for a server and for a client."""

    ca: Path
    cert: Path
    key: Path
    client_cert: Path
    client_key: Path

    @property
    def server_options(self) -> list[str]:
        """Return the mysqld arguments that enable TLS."""
        return [f"--ssl-ca={self.ca}", f"--ssl-cert={self.cert}", f"--ssl-key={self.key}"]


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def write_certificates(
    folder: Path, host: str = "127.0.0.1", *, is_expired: bool = False
) -> Certificates:
    """Write a new authority, and its certificates for `host` and for a client, into `folder`.

    is_expired : all certificates expired yesterday.
    """
    now = datetime.now(UTC) - timedelta(days=2 if is_expired else 0)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())

    def build(subject: str, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name("test authority"))
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
        )

    ca_usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    ca = (
        build("test authority", ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(ca_usage, critical=True)
        .add_extension(authority_id, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    address = x509.IPAddress(ipaddress.ip_address(host))

    def signed(builder: x509.CertificateBuilder) -> x509.Certificate:
        by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_id)
        return (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(by, critical=False)
            .sign(ca_key, hashes.SHA256())
        )

    cert = signed(
        build("test server", key.public_key()).add_extension(
            x509.SubjectAlternativeName([address]), critical=False
        )
    )
    client_cert = signed(build("test client", client_key.public_key()))
    names = ("ca", "server-cert", "server-key", "client-cert", "client-key")
    made = Certificates(*(folder / f"{name}.pem" for name in names))
    for path, certificate in ((made.ca, ca), (made.cert, cert), (made.client_cert, client_cert)):
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    for path, private in ((made.key, key), (made.client_key, client_key)):
        path.write_bytes(
            private.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
    return made
