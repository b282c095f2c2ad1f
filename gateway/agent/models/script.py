"""A model that says what a script says: the test double of everything that needs a model.

    turns:
      - user: weather                 # when the person's last message contains this; any case
        answers:                      # the first answer of the turn, the one after its tool results, ...
          - tool_calls: [{name: get_weather, args: {city: Paris}}]
          - text: It is 18 degrees and sunny.
      - text: Good morning.           # without `user`: played once, in order
      - chunks: [Good, " ", night]    # as it streams; `delay` seconds before each
        delay: 50ms
      - error: {kind: rate, message: slow down}
      - text: half a sentence
        error: {kind: network}        # after the text

A turn with `user` is chosen by the person's words, as often as they come: it holds across restarts. The others are
played in their order. When a script has no answer, that is a `ModelError` of kind `script`, which names the file.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from gateway.agent.model import WORDS, Chunk, ModelRequest
from gateway.errors import ConfigError, ModelError
from gateway.messages.transcript import Entry, ToolCall, Usage
from gateway.yaml_source.binder import bind
from gateway.yaml_source.parser import read_yaml
from gateway.yaml_source.units import Duration

REQUESTS = 1000  # that are kept: a gateway that plays a script may do so for days


class ScriptedCall(msgspec.Struct, frozen=True):
    """A tool call; without an id it gets one."""

    name: str
    args: dict[str, Any] = {}
    id: str = ""


class ScriptedError(msgspec.Struct, frozen=True):
    """A failure, by the kinds of `ModelError`."""

    kind: str = "other"
    message: str = "the script says so"
    retry_after: float | None = None


class ScriptedAnswer(msgspec.Struct, frozen=True):
    """One answer: text (or chunks of it), tool calls, and perhaps an error at its end."""

    text: str = ""
    chunks: tuple[str, ...] = ()
    tool_calls: tuple[ScriptedCall, ...] = ()
    delay: Duration = Duration(0)
    error: ScriptedError | None = None
    usage: Usage = Usage()
    stop: str = ""


class ScriptedTurn(ScriptedAnswer, frozen=True):
    """An answer, or several in a row, perhaps only to certain words."""

    user: str = ""
    answers: tuple[ScriptedAnswer, ...] = ()


class Script(msgspec.Struct, frozen=True):
    """A script as it is written."""

    turns: tuple[ScriptedTurn, ...]


class ScriptModel:
    """A model that plays a script; `requests` are the latest ones, for inspection."""

    def __init__(self, turns: Sequence[ScriptedTurn], source: str = "the script") -> None:
        self.name = "script"
        self.requests: list[ModelRequest] = []
        self._keyed = [(turn.user.lower(), _answers(turn)) for turn in turns if turn.user]
        self._queue = [answer for turn in turns if not turn.user for answer in _answers(turn)]
        self._played = 0
        self._source = source

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Stream the answer that the script has for this request."""
        self.requests.append(request)
        del self.requests[:-REQUESTS]
        answer = self._choose(request.messages)
        for text in answer.chunks or WORDS.findall(answer.text):
            if answer.delay:
                await anyio.sleep(answer.delay)
            yield Chunk(text)
        if answer.error:
            wrong = answer.error
            raise ModelError(wrong.message, kind=wrong.kind, retry_after=wrong.retry_after)
        calls = tuple(
            ToolCall(call.id or f"call_{len(request.messages)}_{number}", call.name, dict(call.args))
            for number, call in enumerate(answer.tool_calls)
        )
        usage = msgspec.structs.replace(answer.usage, model=request.name or self.name)
        yield Chunk(tool_calls=calls, usage=usage, stop=answer.stop or ("tool_calls" if calls else "stop"))

    def _choose(self, messages: Sequence[Entry]) -> ScriptedAnswer:
        place = next((n for n in range(len(messages) - 1, -1, -1) if messages[n].role == "user"), 0)
        text = messages[place].content if messages else ""
        before = sum(entry.role == "assistant" for entry in messages[place:])
        for words, answers in self._keyed:
            if words in text.lower():
                if before < len(answers):
                    return answers[before]
                raise self._no_answer(f"no answer number {before + 1} to {words!r}")
        if self._played == len(self._queue):
            raise self._no_answer(f"nothing more to say; the question was {text[:80]!r}")
        self._played += 1
        return self._queue[self._played - 1]

    def _no_answer(self, what: str) -> ModelError:
        return ModelError(f"{self._source} has {what}", kind="script")


def script(*turns: str | dict[str, Any]) -> ScriptModel:
    """Build a script from Python: a string is a text, a mapping is a turn as in the file."""
    return ScriptModel(
        [msgspec.convert({"text": turn} if isinstance(turn, str) else turn, ScriptedTurn) for turn in turns]
    )


def read_script(path: Path) -> ScriptModel:
    """Read the script in a file.

    Raises:
        ConfigError: it is not a script; every fault is named with its place.
    """
    turns, findings = bind(read_yaml(path), Script)
    if turns is None:
        raise ConfigError("\n".join(str(finding) for finding in findings))
    return ScriptModel(turns.turns, str(path))


def _answers(turn: ScriptedTurn) -> Sequence[ScriptedAnswer]:
    return turn.answers or (turn,)
