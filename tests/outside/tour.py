"""Callers of a running gateway: commands with `--json`, verbs of the control socket; and the store of their answers.

The socket is spoken as any program would speak it: JSON-RPC, a line a message. Whether a parameter of a verb counts is
found out by leaving it out.
"""

import json
import select
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gateway.testing import GatewayProcess
from tests.outside.program import printed
from tests.outside.shapes import Facts, shape

NONSENSE = {"no-such-parameter": 1}


class Refused(Exception):
    """The socket's own words."""


class Line:
    """A connection to the control socket."""

    def __init__(self, path: str, kept: "Kept") -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(path)
        self._file = self._socket.makefile("rb")
        self._kept = kept
        self._last = 0

    def send(self, verb: str, params: Mapping[str, Any]) -> None:
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": verb, "params": params}
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def hear(self) -> Any:
        message = json.loads(self._file.readline())
        own = "a notification" if "method" in message else "a refusal" if "error" in message else "an answer"
        self._kept.note(
            "control socket", own, {key: 0 if key in ("params", "result") else value for key, value in message.items()}
        )
        return message

    def has_something(self) -> bool:
        return bool(select.select([self._socket], [], [], 0)[0])

    def ask(self, verb: str, params: Mapping[str, Any]) -> Any:
        """The result; what comes before it is written down.

        Raises:
            Refused: the gateway did.
        """
        self.send(verb, params)
        while "method" in (message := self.hear()):
            self._kept.note("control socket", f"{verb} tells {message['method']}", message["params"])
        if "error" in message:
            raise Refused(message["error"]["message"])
        return message["result"]

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class Kept:
    """The answers, by section and caller, until they become facts."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], list[Any]] = {}
        self.facts: dict[str, Facts] = {}

    def note(self, section: str, name: str, value: Any) -> None:
        self._told.setdefault((section, name), []).append(value)

    def add(self, section: str, name: str, fact: str) -> None:
        self.facts.setdefault(section, {})[name] = fact

    def all(self) -> dict[str, Facts]:
        for (section, name), values in self._told.items():
            self.add(section, name, "told")
            for path, kind in shape(*values).items():
                self.add(section, f"{name}: {path}", kind)
        return self.facts


class Tour:
    """Asks everything once; what comes is in `kept`."""

    def __init__(self, gateway: GatewayProcess, kept: Kept) -> None:
        self.gateway = gateway
        self.kept = kept

    def show(self, command: str, *words: str) -> Any:
        """Return the command's output with `--json`."""
        said = printed("--home", str(self.gateway.home.root), *command.split(), *words, "--json")
        told = [json.loads(line) for line in said.splitlines()] or [{}]
        for one in told:
            self.kept.note("json", f"{command} --json", one)
        return told[0]

    @contextmanager
    def line(self) -> Iterator[Line]:
        line = Line(str(self.gateway.home.socket), self.kept)
        try:
            yield line
        finally:
            line.close()

    def ask(self, verb: str, params: Mapping[str, Any]) -> Any:
        with self.line() as line:
            return line.ask(verb, params)

    def verb(self, verb: str, /, **params: Any) -> Any:
        """Call a verb with these parameters; and without each of them, to learn which are required or matter."""
        told = {name: self.without(verb, params, name) for name in params}
        whole = self.answered(verb, params)
        if isinstance(whole, Refused):
            self.kept.add("control socket", f"{verb}{sorted(params)}", f"is refused: {whole}")
            return {}
        self.kept.note("control socket", verb, whole)
        optional = [name for name, answer in told.items() if not isinstance(answer, Refused)]
        is_strict = optional and isinstance(self.answered(verb, params | NONSENSE), Refused)
        is_steady = optional and not is_strict and steady(self.answered(verb, params)) == steady(whole)
        for name, answer in told.items():
            is_other = shape(answer) != shape(whole) or (is_steady and steady(answer) != steady(whole))
            counts = is_strict or is_other
            said = "may be given" if counts else "counts for nothing"
            self.kept.add("control socket", f"{verb}({name})", said if name in optional else "must be given")
        return whole

    def without(self, verb: str, params: Mapping[str, Any], name: str) -> Any:
        return self.answered(verb, {key: value for key, value in params.items() if key != name})

    def answered(self, verb: str, params: Mapping[str, Any]) -> Any:
        try:
            return self.ask(verb, params)
        except Refused as refused:
            return refused


def steady(value: Any) -> Any:
    """Without what a moment adds: times, and what is printed with them."""
    if isinstance(value, dict):
        return {key: steady(one) for key, one in value.items() if key not in ("output", "traceback")}
    if isinstance(value, list):
        return [steady(one) for one in value]
    return 0.0 if isinstance(value, float) else value
