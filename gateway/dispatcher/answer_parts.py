"""The messages of one answer.

With `display.final: new`, text before a tool call is a message of its own, the line of the tools is another message,
and the answer is a new message below these: a network notifies people of a new message, but not of an edit.
"""

from collections.abc import Iterator
from typing import TypeGuard

from gateway.config.platform_settings import ProgressDisplay
from gateway.files.lines import split_file_lines
from gateway.lanes.turn import LaneTurn, count_parts, has_own_calls, reply_id_of
from gateway.messages.message import Message, Reply
from gateway.messages.roles import Role
from gateway.messages.steps import LlmStep, Step


class AnswerParts:
    """Makes the replies of a turn's answer; if `is_one`, the whole answer is a single message, which is edited."""

    def __init__(self, turn: LaneTurn, message: Message, progress: ProgressDisplay, *, is_one: bool) -> None:
        self.progress = progress
        self.is_one = is_one
        self.has_line = progress != "off" and not is_one
        self._turn_id = turn.turn_id
        self._message = message
        self._count = 0 if is_one else count_parts(turn.turn_id, turn.open.steps)

    def make_reply(self, text: str) -> Reply:
        """Return the current part of the answer, with this text."""
        return self._make(reply_id_of(self._turn_id, self._count), text)

    def make_line(self) -> Reply:
        """Return the reply for the line of the tools, for an answer in which the line is a message of its own."""
        return self._make(f"{self._turn_id}:line", "")

    def list_shown(self) -> Iterator[Reply]:
        """Yield the replies that an earlier run of the turn may have displayed."""
        yield self.make_reply("")
        if self.has_line:
            yield self.make_line()

    def ends_with(self, step: Step) -> TypeGuard[LlmStep]:
        """Return True if this step ends the current part: the model's text before calls of tools."""
        return not self.is_one and isinstance(step, LlmStep) and has_own_calls(step, self._turn_id)

    def list_words(self, step: Step, role: Role | None) -> list[Reply]:
        """Return the reply with the text of a step that ends a part, for a reader of this role; [] without a role."""
        if role is None or not self.ends_with(step):
            return []
        text, _ = split_file_lines(step.entry.content)
        said = self._make(reply_id_of(self._turn_id, self._count), text, silent=True, role=role)
        return [said] if text.strip() else []

    def go_on(self) -> Reply:
        """Start the next part, and return its reply."""
        self._count += 1
        return self.make_reply("")

    def _make(self, number: str, text: str, **more: object) -> Reply:
        return Reply(number, self._message.address, text, reply_to=self._message.id, **more)  # type: ignore[arg-type]
