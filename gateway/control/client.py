"""The command line's end of the control socket: plain blocking sockets, so that a short verb starts at once."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from gateway.control import LINE_LIMIT
from gateway.errors import ExitCode, GatewayError, NotRunning

PATIENCE = 30.0  # seconds for an answer that is quickly given


class ControlError(GatewayError):
    """The gateway refused or failed; its own words."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit = ExitCode(code) if code in set(ExitCode) else ExitCode.FAILED


class ControlClient(AbstractContextManager["ControlClient"]):
    """A connection to the running gateway.

    Raises:
        NotRunning: no gateway listens on the socket.
    """

    def __init__(self, path: Path, timeout: float | None = PATIENCE) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise NotRunning(
                f"no gateway is running for this home: {path}: {error.strerror}\nstart it with: hermes-gateway run"
            ) from None
        self._file = self._socket.makefile("rb")
        self._last = 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; what still runs for this connection ends in the gateway."""
        with suppress(OSError):  # the other end may have been faster
            self._socket.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._socket.close()

    def start(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request without waiting; its answers come out of `messages`."""
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}}
        data = json.dumps(request).encode() + b"\n"
        if len(data) > LINE_LIMIT:
            raise GatewayError(
                f"that is more than the {LINE_LIMIT >> 20} MB that the gateway takes at once; nothing was sent"
            )
        with suppress(ConnectionError):  # who refuses a caller hangs up at once; its word is there to be read
            self._socket.sendall(data)
        return self._last

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield all messages of the gateway, until it hangs up; an unfinished line does not count."""
        with suppress(ConnectionError):
            while (line := self._file.readline()).endswith(b"\n"):
                yield json.loads(line)

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        on_notification: Callable[[str, Any], None] = lambda _method, _params: None,
    ) -> Any:
        """Send one request; notifications go to `on_notification`. Returns the result, or raises the error."""
        request = self.start(method, params)
        for message in self.messages():
            if "method" in message:
                on_notification(message["method"], message["params"])
            elif message.get("id") in (request, None):  # None: it was not understood whose request that was
                return result_from(message)
        raise NotRunning(f"the gateway went away while it answered `{method}`")


def call_gateway(path: Path, method: str, timeout: float | None = None, **params: Any) -> Any:
    """Send one request to the running gateway, and wait for its answer without a limit by default.

    Raises:
        NotRunning: no gateway is running.
    """
    with ControlClient(path, timeout) as client:
        return client.call(method, params)


def result_from(message: dict[str, Any]) -> Any:
    """Return the result in an answer, or raise its error."""
    if "error" in message:
        raise ControlError(message["error"]["message"], message["error"]["code"])
    return message["result"]
