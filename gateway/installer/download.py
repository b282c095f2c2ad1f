"""A file from the web, bounded, over a line that nobody changes."""

import time
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPMessage
from ipaddress import ip_address
from typing import IO
from urllib.parse import urlsplit

from gateway.errors import HookError
from gateway.hooks.folders.installed import remove_login
from gateway.logs.text import to_one_line

PATIENCE = 30.0  # seconds that nothing may come
WHOLE_PATIENCE = 300.0  # seconds that all of it may take
CHUNK = 1 << 16


def download(address: str, limit: int, patience: float = WHOLE_PATIENCE) -> bytes:
    """What lies there.

    Raises:
        HookError: it is not to be had in that time, larger than that, or comes over a line that others can change.
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
    """Of a line that could not be opened, what the system said."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else None
    return reason.strerror if isinstance(reason, OSError) and reason.strerror else str(error)


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and is_own_host(parts.hostname or "")):
        return
    raise HookError(f"{to_one_line(remove_login(address))}: what is installed is fetched over https")


def is_own_host(host: str) -> bool:
    """This machine itself."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class _CheckedRedirects(urllib.request.HTTPRedirectHandler):
    """Leads from https to https alone: not to this machine either, where others than the host answer."""

    def redirect_request(
        self,
        request: urllib.request.Request,
        file: IO[bytes],
        code: int,
        said: str,
        headers: HTTPMessage,
        address: str,
    ) -> urllib.request.Request | None:
        _check_address(address)
        if request.type == "https" and not address.startswith("https:"):
            led = to_one_line(remove_login(address))
            raise HookError(f"{to_one_line(request.full_url)} leads to {led}, which is not https")
        return super().redirect_request(request, file, code, said, headers, address)


_OPENER = urllib.request.build_opener(_CheckedRedirects)
