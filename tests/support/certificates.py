"""Certificates for tests: an authority and what it issues, as the PEM files that Kafka and the guard read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

KEY_PASSWORD = "key-password-5521"


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate chain, its private key in the clear and encrypted with KEY_PASSWORD, and both in one."""

    certfile: Path
    keyfile: Path
    encrypted_keyfile: Path
    keystore: Path


class Authority:
    """An authority with its certificate in a file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._ca = trustme.CA()
        self.cafile = folder / "ca.pem"
        self._ca.cert_pem.write_to_path(str(self.cafile))

    def issue(self, name: str) -> Issued:
        """A certificate for a host name or address."""
        leaf = self._ca.issue_cert(name)
        chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        # Java reads keys in PKCS 8 only.
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        sealed = key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(KEY_PASSWORD.encode())
        )
        files = {"cert": chain, "key": plain, "sealed": sealed, "keystore": plain + chain}
        for kind, content in files.items():
            self._file(name, kind).write_bytes(content)
        return Issued(*(self._file(name, kind) for kind in files))

    def _file(self, name: str, kind: str) -> Path:
        return self._folder / f"{name}.{kind}.pem"
