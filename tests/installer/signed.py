"""Signatures of OpenSSH's form, made without it, good and bad."""

import base64
import hashlib
import struct
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

NAMESPACE = b"hermes-hooks"


def pack(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


class Signer:
    """A person with a key."""

    def __init__(self) -> None:
        self._private = Ed25519PrivateKey.generate()
        public = self._private.public_key()
        self._packed = pack(b"ssh-ed25519", public.public_bytes(Encoding.Raw, PublicFormat.Raw))

    @property
    def line(self) -> str:
        """Return the public key, as a file `.pub` holds it."""
        return f"ssh-ed25519 {base64.b64encode(self._packed).decode()} somebody@example.org"

    def sign(self, data: bytes, namespace: bytes = NAMESPACE, kind: bytes = b"ssh-ed25519") -> str:
        hashed = hashlib.sha512(data).digest()
        signed = self._private.sign(b"SSHSIG" + pack(namespace, b"", b"sha512", hashed))
        whole = struct.pack(">6sI", b"SSHSIG", 1) + pack(self._packed, namespace, b"", b"sha512", pack(kind, signed))
        return f"-----BEGIN SSH SIGNATURE-----\n{base64.b64encode(whole).decode()}\n-----END SSH SIGNATURE-----\n"

    def sign_file(self, path: Path, namespace: bytes = NAMESPACE) -> None:
        path.with_name(f"{path.name}.sig").write_text(self.sign(path.read_bytes(), namespace))
