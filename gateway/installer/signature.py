"""The signatures of `ssh-keygen -Y sign`, by ed25519 keys: most people have both.

The format is OpenSSH's PROTOCOL.sshsig: the signed data are a namespace and a hash of the text, so that a signature for
another purpose is not valid here.
"""

import base64
import binascii
import hashlib
import struct

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gateway.errors import HookError

NAMESPACE = "hermes-hooks"
KEY_TYPE = b"ssh-ed25519"
MAGIC = b"SSHSIG"
HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"


def read_key(text: str) -> str:
    """Return a public key as one line, without its comment. Raises HookError for any other text or kind of key."""
    words = text.split()
    if len(words) < 2 or words[0].encode() != KEY_TYPE:
        raise HookError("the key is not a line `ssh-ed25519 AAAA...`\nmake one with: ssh-keygen -t ed25519")
    _split_key(_decode(words[1]))
    return f"{words[0]} {words[1]}"


def verify_signature(data: bytes, signature: str, key: str) -> None:
    """Verify a signature; raise HookError if this key did not sign this text."""
    body = signature.strip()
    if not body.startswith(BEGIN) or not body.endswith(END):
        raise HookError("its signature cannot be read: it is not a SSH SIGNATURE")
    packed = _decode("".join(body.removeprefix(BEGIN).removesuffix(END).split()))
    if not packed.startswith(MAGIC + struct.pack(">I", 1)):
        raise HookError("its signature is of a version that is not known here")
    signer, namespace, reserved, hashed, signed, *rest = (*_split(packed[len(MAGIC) + 4 :]), b"", b"", b"", b"", b"")
    wanted = _split_key(_decode(key.split()[1]))
    if any(rest) or _split_key(signer) != wanted:
        raise HookError("it is signed by another key than the one in your settings")
    if namespace != NAMESPACE.encode() or hashed not in HASHES:
        raise HookError(f"it is signed for something else\nsign it with: ssh-keygen -Y sign -n {NAMESPACE} -f KEY FILE")
    kind, raw, *more = (*_split(signed), b"", b"")
    digest = HASHES[hashed](data).digest()
    message = MAGIC + b"".join(struct.pack(">I", len(part)) + part for part in (namespace, reserved, hashed, digest))
    try:
        if kind != KEY_TYPE or any(more):
            raise ValueError(kind)
        Ed25519PublicKey.from_public_bytes(wanted).verify(raw, message)
    except (ValueError, InvalidSignature):
        raise HookError("its signature does not fit: it was changed after it was signed") from None


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise HookError("a key or a signature is not base64") from None


def _split_key(packed: bytes) -> bytes:
    """Return the 32 bytes of a key."""
    kind, raw, *rest = (*_split(packed), b"", b"")
    if kind != KEY_TYPE or len(raw) != 32 or any(rest):
        raise HookError("only keys of the kind ssh-ed25519 are taken")
    return raw


def _split(packed: bytes) -> tuple[bytes, ...]:
    """Split a sequence of texts, each after its length."""
    parts, at = [], 0
    while at < len(packed):
        length = int.from_bytes(packed[at : at + 4], "big")
        part = packed[at + 4 : at + 4 + length]
        if len(part) != length or at + 4 > len(packed):
            raise HookError("a key or a signature is cut off")
        parts.append(part)
        at += 4 + length
    return tuple(parts)
