"""The download of a file from the web, with a size limit, over a connection that others cannot change."""

import time
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPMessage
from ipaddress import ip_address
from typing import IO
from urllib.parse import urlsplit

from gateway.errors import HookError
from gateway.hooks.manifests.installed import remove_login
from gateway.logs.text import to_one_line

PATIENCE = 30.0  # seconds without any byte
WHOLE_PATIENCE = 300.0  # seconds for the whole file
CHUNK = 1 << 16


def download(address: str, limit: int, patience: float = WHOLE_PATIENCE) -> bytes:
    """Download the file at an address.

    Raises:
        HookError: it is not available in time, is too large, or the connection can be changed by others.
    """
    end = time.monotonic() + patience
    try:
        _check_address(address)
        with _OPENER.open(address, timeout=PATIENCE) as answer:
            parts, left = [], limit
            while data := answer.read1(CHUNK):
                left -= len(data)
                if left < 0:
                    raise HookError(f"{to_one_line(address)} is larger than {limit:,} bytes")
                if time.monotonic() > end:
                    raise TimeoutError(f"it did not come within {patience:g} s")
                parts.append(data)
    except (OSError, HTTPException, ValueError) as error:
        raise HookError(f"{to_one_line(address)} cannot be fetched: {to_one_line(_describe(error), 200)}") from None
    return b"".join(parts)


def _describe(error: Exception) -> str:
    """Describe an error; for a failed connection, the system's words."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else None
    return reason.strerror if isinstance(reason, OSError) and reason.strerror else str(error)


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and is_own_host(parts.hostname or "")):
        return
    raise HookError(f"{to_one_line(remove_login(address))}: what is installed is fetched over https")


def is_own_host(host: str) -> bool:
    """Return True for this machine itself."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class _CheckedRedirects(urllib.request.HTTPRedirectHandler):
    """The rule for redirects: only from https to https, and not to this machine, where others than the host answer."""

    def redirect_request(
        self, request: urllib.request.Request, file: IO[bytes], code: int, said: str, headers: HTTPMessage, address: str
    ) -> urllib.request.Request | None:
        _check_address(address)
        if request.type == "https" and not address.startswith("https:"):
            led = to_one_line(remove_login(address))
            raise HookError(f"{to_one_line(request.full_url)} leads to {led}, which is not https")
        return super().redirect_request(request, file, code, said, headers, address)


_OPENER = urllib.request.build_opener(_CheckedRedirects)
