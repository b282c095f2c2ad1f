"""The NATS connection to a remote hook: one request a call, on the hook's subject.

Each hook has a connection of its own, so that a hook that floods its connection disturbs neither the journal nor other
hooks. The first call opens the connection, and the next call after a loss opens it again: a caller should learn at once
that the hook is not there.
"""

import asyncio
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import anyio
import msgspec

from gateway.hooks.wires.wire import MAX_ANSWER_BYTES, HookFailed
from gateway.late_imports import load_modules
from gateway.threads import run_in_thread

SCHEMES = ("nats", "tls")
EXTRA, PACKAGE = "nats", "nats-py"
LIBRARY = ("nats.aio.client", "nats.errors")
CONNECT_SECONDS = 2
TRIES = 3  # a server that refuses us may close the line before its reason arrives
PING_SECONDS = 10  # a connection that is silent for two of these is lost
LONGEST_SECONDS = 86_400.0  # a manifest's `timeout` is shorter, and ends the call first

_ADDRESS = re.compile(r"(nats|tls)://(?:([^\s/@:,]+)@)?([^\s/@]+)/([^\s/]+)")
_SUBJECT = re.compile(r"[^\s.*>$][^\s.*>]*(\.[^\s.*>]+)*")


class NatsAddress(msgspec.Struct, frozen=True):
    """An address `nats://USER@HOST:PORT,HOST:PORT/SUBJECT`; the user is optional."""

    servers: tuple[str, ...]
    user: str
    subject: str


def is_nats_url(url: str) -> bool:
    return url.partition("://")[0] in SCHEMES


def parse_nats_url(url: str) -> NatsAddress:
    """Parse an address; raises ValueError with the fault."""
    if re.match(r"\w+://[^/@]*:[^/@]*@", url):
        raise ValueError("`url` holds a password, which belongs into the variable that `secret_env` names")
    if not (found := _ADDRESS.fullmatch(url)):
        raise ValueError("`url` is not an address of a hook on NATS")
    scheme, user, servers, subject = found.groups()
    if not _SUBJECT.fullmatch(subject):
        raise ValueError("`url` ends with what is not a subject: it has no `*` or `>`, and does not begin with `$`")
    if not all(_is_server(one) for one in servers.split(",")):
        raise ValueError("`url` names a server that is not a HOST:PORT")
    return NatsAddress(tuple(f"{scheme}://{one}" for one in servers.split(",")), user or "", subject)


def _is_server(text: str) -> bool:
    try:
        parts = urlsplit(f"//{text}")
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def has_nats_library() -> bool:
    return find_spec("nats") is not None


class NatsTransport:
    """A transport that sends requests on one subject. `password` belongs to the user in the URL."""

    def __init__(self, name: str, url: str, password: str) -> None:
        self._name = name
        self._address = parse_nats_url(url)
        self._where = f"{self._address.subject} at {','.join(self._address.servers)}"
        self._password = password
        self._client: Any = None
        self._connecting = anyio.Lock()
        self._asking: set[asyncio.Future[Any]] = set()
        self._said = ""  # the server's last refusal

    async def exchange(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Send a request and return the body of a good answer; raises HookFailed, as `HttpTransport` does."""
        _, errors = await run_in_thread(load_modules, *LIBRARY)
        client = await self._connect(errors)
        if len(body) > client.max_payload:
            raise self._failed(f"the event has {len(body)} bytes, and the server takes {client.max_payload}", "refused")
        asking = asyncio.ensure_future(
            client.request(self._address.subject, body, LONGEST_SECONDS, headers=dict(headers) or None)
        )
        self._asking.add(asking)
        try:
            answer: bytes = (await asyncio.shield(asking)).data
        except asyncio.CancelledError:
            if asking.cancelled():  # cancelled by us or with the connection, not by the caller
                raise self._failed(self._said or "the connection was lost before it answered", "died") from None
            asking.cancel()
            raise
        except errors.NoRespondersError:
            what = "no hook listens there; does it run, and may its user subscribe to that?"
            raise self._failed(what, "died") from None
        except (errors.Error, OSError) as error:
            raise self._failed(str(error) or type(error).__name__, "died") from None
        finally:
            self._asking.discard(asking)
        if len(answer) > MAX_ANSWER_BYTES:
            raise self._failed(f"an answer of more than {MAX_ANSWER_BYTES >> 20} MB", "garbled")
        return answer

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _connect(self, errors: Any) -> Any:
        async with self._connecting:
            if self._client is None or not self._client.is_connected:
                await self.close()
                self._client = await self._open(errors)
            return self._client

    async def _open(self, errors: Any) -> Any:
        """Connect to the first server that accepts us."""
        why = ""
        for server in self._address.servers:
            for _ in range(TRIES):
                try:
                    return await self._open_to(server)
                except (errors.Error, OSError, TimeoutError) as error:
                    why = self._said or str(error) or f"not within {CONNECT_SECONDS} s"
                    if not isinstance(error, ConnectionResetError):
                        break
                    why += "; does it know this user and password?"  # it may close before its reason is read
        raise self._failed(f"no server takes us: {why}", "died")

    async def _open_to(self, server: str) -> Any:
        self._said = ""
        client = load_modules(*LIBRARY)[0].Client()
        try:
            await client.connect(
                server,
                name=f"hermes-gateway hook {self._name}",
                user=self._address.user or None,
                password=self._password or None,
                allow_reconnect=False,
                max_reconnect_attempts=1,  # the library has no lower number
                reconnect_time_wait=0,
                connect_timeout=CONNECT_SECONDS,
                ping_interval=PING_SECONDS,
                error_cb=self._note,
                closed_cb=self._give_up,
            )
        except BaseException:
            await client.close()
            raise
        return client

    async def _note(self, error: Exception) -> None:
        """Cancel requests that the server forbids: otherwise the requests would wait for the whole time limit."""
        self._said = str(error) or type(error).__name__
        if "permissions violation" in self._said.lower():
            await self._give_up()

    async def _give_up(self) -> None:
        """Cancel all open requests."""
        for asking in self._asking:
            asking.cancel()

    def _failed(self, what: str, kind: Any) -> HookFailed:
        return HookFailed(f"{self._name} on {self._where}: {what}", kind=kind)
