"""A signature is by one key, over one text, for one purpose; ssh-keygen has made the examples here."""

import base64

import pytest

from gateway.errors import HookError
from gateway.installer.signature import read_key, verify_signature
from tests.installer.signed import Signer

TEXT = b'{"version": 1}\n'
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPTknDmduW/uj9tzOixo/dZ0qDQ0IjxTeX8Xtl6wxSmo somebody"
BEGIN, END = "-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n"
WITH_SHA512 = f"""{BEGIN}\
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg9OScOZ25b+6P23M6LGj91nSoND
QiPFN5fxe2XrDFKagAAAAMaGVybWVzLWhvb2tzAAAAAAAAAAZzaGE1MTIAAABTAAAAC3Nz
aC1lZDI1NTE5AAAAQKKpgOB9g7+2BBzathG29JBFWo9+RExMPx+XW7HjVWfarMGyI6xQXB
ewY/mrR7fdyu3MjMnl9JCLCHWjPH+G0Qg=
{END}"""
WITH_SHA256 = f"""{BEGIN}\
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg9OScOZ25b+6P23M6LGj91nSoND
QiPFN5fxe2XrDFKagAAAAMaGVybWVzLWhvb2tzAAAAAAAAAAZzaGEyNTYAAABTAAAAC3Nz
aC1lZDI1NTE5AAAAQPxyUqBxHPJvNV9vrMKk7POyzcO2tC6QiYHyTfzB7CRHIdWBOc7dwj
4m751Jy6ZmiCkAjY8XyDSGfTfDmEk6ego=
{END}"""
FOR_ANOTHER_PURPOSE = f"""{BEGIN}\
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg9OScOZ25b+6P23M6LGj91nSoND
QiPFN5fxe2XrDFKagAAAAEZmlsZQAAAAAAAAAGc2hhNTEyAAAAUwAAAAtzc2gtZWQyNTUx
OQAAAEDHD9KCKjHLeEKv2jzWenLdOP9uP4FGr81tVkS7DENrkTnfKs6+DQ2nZMPavbdavs
SA65BsJ39WzE58EuUD3N8M
{END}"""


@pytest.mark.row("T25")
@pytest.mark.parametrize("signature", [WITH_SHA512, WITH_SHA256, WITH_SHA512.replace("\n", "\r\n")])
def test_what_ssh_keygen_signed_is_known(signature: str) -> None:
    verify_signature(TEXT, signature, read_key(KEY))


@pytest.mark.row("T25")
@pytest.mark.parametrize("signature", [WITH_SHA512, WITH_SHA256])
def test_another_text_is_not(signature: str) -> None:
    with pytest.raises(HookError, match="changed after it was signed"):
        verify_signature(TEXT + b" ", signature, read_key(KEY))


def bend(signature: str, at: int, value: bytes) -> str:
    """With other bytes at a place."""
    packed = bytearray(base64.b64decode("".join(signature.removeprefix(BEGIN).removesuffix(END).split())))
    packed[at : at + len(value)] = value
    return f"{BEGIN}{base64.b64encode(packed).decode()}\n{END}"


BAD = {
    "another key": (Signer().sign(TEXT), "another key"),
    "another purpose": (FOR_ANOTHER_PURPOSE, "signed for something else"),
    "nothing": ("", "cannot be read"),
    "no base64": (f"{BEGIN}%%%{END}", "not base64"),
    "huge length": (bend(WITH_SHA512, 10, b"\xff\xff\xff\xff"), "cut off"),
    "of another version": (bend(WITH_SHA512, 9, b"\x02"), "version"),
    "another signature": (bend(WITH_SHA512, 170, b"\x00\x01\x02"), "does not fit"),
}


@pytest.mark.row("T25")
@pytest.mark.parametrize(("signature", "said"), BAD.values(), ids=BAD)
def test_what_is_none_is_said(signature: str, said: str) -> None:
    with pytest.raises(HookError, match=said):
        verify_signature(TEXT, signature, read_key(KEY))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssh-ed25519",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7",
        "ssh-ed25519 %%%",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPTknDmd",
        "ssh-ed25519 AAAAB3NzaC1yc2EAAAABIw==",
    ],
)
def test_what_is_no_key_is_said(text: str) -> None:
    with pytest.raises(HookError, match=r"key"):
        read_key(text)
