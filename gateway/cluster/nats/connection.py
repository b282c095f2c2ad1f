"""One connection to the servers: requests with retries, and the handling of outages."""

import asyncio
import base64
import itertools
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec
from nats.aio.client import PING_PROTO, Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from gateway.backoff import Attempts, Backoff
from gateway.errors import EngineError, NoRoom

ANSWER_SECONDS = 5.0
LASTING_SECONDS = 3.0  # how long an outage lasts before the log reports it
REACH_IT = "see that it runs, and that this machine reaches it (hermes-gateway doctor)"
PATIENCE = 15.0  # an election among the servers takes 4 to 8 seconds
PING_SECONDS, MAX_UNANSWERED_PINGS = 2, 2  # we leave a server that hangs within the time of a lease
OLDEST_SERVER = (2, 12)
NO_MESSAGE, NO_CONSUMER, NO_STREAM, NO_LEADER = 10037, 10014, 10059, 10008
NO_MAJORITY = "the NATS servers take nothing: more than half of them must be there, and agree on one that leads"
UNAVAILABLE = 503
NO_RESOURCES, NOT_STORED = 10023, 10077

log = logging.getLogger(__name__)

T = TypeVar("T")


class ServerRefusal(Exception):
    """The server understood a request and refused it.

    `number` is the server's number for the reason, and `seq` the sequence of the record in the way.
    """

    def __init__(self, error: dict[str, Any], seq: int = 0) -> None:
        super().__init__(error.get("description", "no reason given"))
        self.seq = seq
        self.status = int(error.get("code", 0))
        self.number = int(error.get("err_code", 0))

    @property
    def is_full(self) -> bool:
        """True if the server has no room: its answer looks like an outage, but waiting does not help."""
        return self.number == NO_RESOURCES or (self.number == NOT_STORED and "maximum" in str(self))

    @property
    def is_passing(self) -> bool:
        """True if a later try may succeed."""
        return self.status == UNAVAILABLE and not self.is_full

    def make_error(self, what: str, stream: str) -> EngineError:
        """Make the error for a caller whose write to the stream failed; `what` describes the failure."""
        if not self.is_full:
            return EngineError(f"{what}: {self}")
        remedy = f"give it more, by max_file_store in nats.conf or max_bytes of the stream {stream}"
        return NoRoom(f"{what}: it has no room: {self}; {remedy}")


class NoAnswer(Exception):
    """A request without an answer: the server may have carried it out, or not."""


class NotSent(NoAnswer):
    """A request that was not sent, so the server has not carried it out."""


@dataclass
class _NumberedMessage(Msg):
    number: int = field(default_factory=itertools.count().__next__)


class _OrderedClient(Client):
    msg_class = _NumberedMessage

    def abort(self) -> None:
        """Close the connection and drop unsent data: otherwise we would wait for ever for a server that hangs."""
        if isinstance(self._transport, TcpTransport) and (writer := self._transport._io_writer):  # noqa: SLF001
            writer.transport.abort()

    async def _send_ping(self, future: asyncio.Future[bool] | None = None) -> None:
        """Queue the ping behind unsent data: the answer to the ping then proves that this data has arrived."""
        self._pongs.append(future or asyncio.Future())
        self._pending.append(PING_PROTO)
        self._pending_data_size += len(PING_PROTO)
        await self._flush_pending()

    async def _attempt_reconnect(self) -> None:
        self.abort()
        await super()._attempt_reconnect()

    async def _connect_to_server(self, s: Any) -> None:
        self.abort()  # an earlier failed try leaves its transport open
        await super()._connect_to_server(s)


def sequence_of(message: Msg) -> int:
    """Return a number that orders the messages of all subscriptions by arrival."""
    assert isinstance(message, _NumberedMessage)
    return message.number


class Answers(Protocol):
    """A receiver of the messages of one inbox."""

    def note(self, message: Msg) -> None: ...


class ServerDisconnection(msgspec.Struct, eq=False):
    """An outage of the servers: the log has one entry for an outage that lasts, and one entry for its end."""

    _url: str
    _since: float | None = None
    _telling: asyncio.TimerHandle | None = None
    _is_told: bool = False
    refusal: str = ""  # the reason of servers that answer and refuse us

    @property
    def is_lasting(self) -> bool:
        return self._since is not None and time.monotonic() - self._since > LASTING_SECONDS

    def describe(self) -> str:
        """Describe the outage; "" if the servers are connected."""
        if self._since is None:
            return ""
        gone = f"the NATS server at {self._url} is gone since {time.monotonic() - self._since:.0f} s"
        return f"{gone}: {self.refusal}; {_find_remedy(self.refusal)}" if self.refusal else gone

    def begin(self) -> None:
        if self._since is None:
            self._since = time.monotonic()
            self._telling = asyncio.get_running_loop().call_later(LASTING_SECONDS, self._tell)

    def _tell(self) -> None:
        self._is_told = True
        log.error("%s; what people write waits until it is back: %s", self.describe(), REACH_IT)

    def end(self) -> None:
        if self._is_told and self._since is not None:
            log.warning("the NATS server at %s is back after %.0f s", self._url, time.monotonic() - self._since)
        self.forget()

    def forget(self) -> None:
        """Forget the outage, without a log entry."""
        if self._telling:
            self._telling.cancel()
        self._since, self._telling, self._is_told, self.refusal = None, None, False, ""


class Connection:
    """A connection to the servers, made by `open_connection`."""

    def __init__(self, client: _OrderedClient, url: str) -> None:
        self.client = client
        self.url = re.sub(r"//[^/@]*@", "//", url)  # without the password
        self.disconnection = ServerDisconnection(self.url)
        self.on_return: list[Callable[[], None]] = []
        self._inbox = client.new_inbox()
        self._listeners: dict[str, Answers] = {}
        self._number = 0

    async def start(self) -> None:
        await self.listen(f"{self._inbox}.*", self._hear)

    def open_inbox(self, listener: Answers) -> str:
        """Return a new subject, whose messages go to the listener until `close_inbox`."""
        self._number += 1
        self._listeners[str(self._number)] = listener
        return f"{self._inbox}.{self._number}"

    def close_inbox(self, inbox: str) -> None:
        self._listeners.pop(inbox.rpartition(".")[2], None)

    async def _hear(self, message: Msg) -> None:
        if listener := self._listeners.get(message.subject.rpartition(".")[2]):
            listener.note(message)

    async def listen(self, subject: str, hear: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """Subscribe without a limit of waiting messages: a slow reader must not lose messages."""
        try:
            return await self.client.subscribe(subject, cb=hear, pending_msgs_limit=-1, pending_bytes_limit=-1)
        except NatsError as error:
            raise EngineError(f"the NATS server at {self.url} is not there: {error}") from error

    async def publish(self, subject: str, data: bytes, headers: dict[str, str] | None = None, reply: str = "") -> None:
        self._check_connected()
        try:
            await self.client.publish(subject, data, reply=reply, headers=headers)
        except (NatsError, OSError) as error:
            raise NoAnswer(str(error) or type(error).__name__) from error

    async def ask(
        self, subject: str, data: bytes, headers: dict[str, str] | None = None, seconds: float = ANSWER_SECONDS
    ) -> bytes:
        """Send a request and return the answer. Raises NoAnswer."""
        self._check_connected()
        try:
            return (await self.client.request(subject, data, timeout=seconds, headers=headers)).data
        except (NatsError, OSError, TimeoutError) as error:
            raise NoAnswer(str(error) or type(error).__name__) from error

    def _check_connected(self) -> None:
        if not self.client.is_connected:
            raise NotSent("it is not there")

    async def ask_stored(self, subject: str, data: bytes, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """Send a request and return the JSON answer. Raises NoAnswer, ServerRefusal."""
        data = await self.ask(subject, data, headers)
        answer: dict[str, Any] = json.loads(data) if data else {}
        if error := answer.get("error"):
            raise ServerRefusal(error)
        return answer

    async def call(self, verb: str, **body: Any) -> dict[str, Any]:
        """Call the server's own interface, and retry until the server answers.

        Raises:
            ServerRefusal: the server refuses.
            EngineError: no server answered.
        """
        return await self.insist(lambda: self.ask_stored(f"$JS.API.{verb}", json.dumps(body).encode()))

    async def insist(self, act: Callable[[], Awaitable[T]]) -> T:
        attempts, end = Attempts(Backoff(0.05, 1.0)), time.monotonic() + PATIENCE
        while True:
            try:
                return await act()
            except (NoAnswer, ServerRefusal) as error:
                if isinstance(error, ServerRefusal) and not error.is_passing:
                    raise
                self.check_open()
                if time.monotonic() > end:
                    raise EngineError(describe_failure(self.url, error)) from error
            await asyncio.sleep(attempts.pause())

    def check_open(self) -> None:
        if self.client.is_closed:
            raise EngineError("the journal is closed")

    async def note_loss(self) -> None:
        if not self.client.is_closed:
            self.disconnection.begin()

    async def note_return(self) -> None:
        self.disconnection.end()
        for act in self.on_return:
            act()

    async def close(self) -> None:
        self.disconnection.forget()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self.client.close()
        except TimeoutError:
            self.client.abort()


def describe_failure(url: str, why: Exception) -> str:
    """Describe a failure after all retries."""
    if isinstance(why, ServerRefusal) and why.number == NO_LEADER:
        return NO_MAJORITY
    return f"the NATS server at {url} does not answer: {why}{_explain(url, why)}"


def _explain(url: str, error: Exception) -> str:
    """Explain why no server responds: JetStream is off, or too few servers of a cluster are there."""
    if not isinstance(error.__cause__, NoRespondersError):
        return ""
    asked = "are most of the servers there, and is JetStream on?" if "," in url else "is JetStream on?"
    return f"\n{asked} it wants in nats.conf: jetstream {{ sync_interval: always }}"


async def open_connection(url: str, user: str = "", password: str = "") -> Connection:
    """Connect to the servers. Raises EngineError if no server answers."""
    client = _OrderedClient()
    connection, fault = Connection(client, url), ""

    def tell() -> None:
        log.error(
            "%s; it is tried again for %.0f s", _describe_absence(connection.url, fault), PATIENCE - LASTING_SECONDS
        )

    telling = asyncio.get_running_loop().call_later(LASTING_SECONDS, tell)

    async def note_fault(error: Exception) -> None:
        nonlocal fault
        said = str(error) or type(error).__name__
        # a server that refuses us may close the line before its reason arrives: one try in several shows it
        if not _find_remedy(fault):
            fault = said
        if _find_remedy(said):
            connection.disconnection.refusal = said
        log.debug("the connection to NATS: %s", said)

    try:
        async with asyncio.timeout(PATIENCE):  # the server may start at the same time as we do
            await client.connect(
                url.split(","),
                name="hermes-gateway",
                user=user or None,
                password=password or None,
                max_reconnect_attempts=-1,
                reconnect_time_wait=1,
                ping_interval=PING_SECONDS,
                max_outstanding_pings=MAX_UNANSWERED_PINGS,
                disconnected_cb=connection.note_loss,
                reconnected_cb=connection.note_return,
                error_cb=note_fault,
            )
    except (NatsError, OSError, TimeoutError) as error:
        await client.close()
        why = str(error)
        if not why or _find_remedy(fault):
            why = fault or f"not within {PATIENCE:g} s"
        raise EngineError(_describe_absence(connection.url, why)) from error
    finally:
        telling.cancel()
    return connection


def _describe_absence(url: str, why: str) -> str:
    return f"no NATS server answers at {url}: {why or 'no answer'}; {_find_remedy(why) or 'is it running?'}"


def _find_remedy(why: str) -> str:
    """Return the remedy for a refusal; "" if no remedy is known."""
    if "authorization" in why.lower():
        return "it wants the user and password that it knows, as NATS_USER and NATS_PASSWORD"
    if "certificate" in why.lower():
        return "it wants an authority that this machine knows, or one that SSL_CERT_FILE names"
    return ""


def decode_headers(text: str) -> dict[str, str]:
    """Decode the headers of a stored message: a line with the protocol's version, then a line for each header."""
    lines = base64.b64decode(text).decode("utf-8", "replace").split("\r\n")[1:] if text else []
    return {name: value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}


def time_of(text: str) -> float:
    """Convert the server's text of a time, which has nanoseconds, to seconds."""
    head, _, rest = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{head}+00:00").timestamp() + float(f"0.{rest or 0}")
