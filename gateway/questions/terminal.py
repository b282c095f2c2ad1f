"""The open questions of a session, for a terminal that connects again: no text answers an unseen question.

A person at a terminal has many processes, and another one, or none, may have shown a question. So each process lists
the questions that it has shown; a process for one message (`chat -m`) may also answer questions that an earlier one has
shown, if the text can only be an answer.
"""

from collections.abc import Collection

import msgspec

from gateway.access.access_control import AccessControl
from gateway.engine.interface import Engine
from gateway.messages.message import Message, Reply
from gateway.questions.rights import ANSWER_WORDS, find_rights, is_approval
from gateway.questions.shown import own_reply_id_of
from gateway.records import records, subjects
from gateway.sessions.repository import SessionRepository


class TerminalQuestions(msgspec.Struct, frozen=True):
    """Finds the open questions."""

    engine: Engine
    sessions: SessionRepository
    access: AccessControl

    async def list_open(self, message: Message, key: str) -> list[Reply]:
        """List the questions in this session to the sender of the message, who would answer them by a text."""
        return [reply for reply, _ in await self._find_open(message, key)]

    async def find_unseen(
        self, message: Message, key: str, shown: Collection[str], before: Collection[str]
    ) -> list[Reply]:
        """List the questions for which this message must wait.

        `shown` are those that its process has shown; `before` those of earlier processes in whose place it speaks.
        """
        asked = await self._find_open(message, key)
        said = message.text.strip().lower() in ANSWER_WORDS
        known = {*shown, *before}
        is_seen = all(reply.id in known and (reply.id in shown or said or not needs_yes) for reply, needs_yes in asked)
        return [] if is_seen else [reply for reply, _ in asked]

    async def _find_open(self, message: Message, key: str) -> list[tuple[Reply, bool]]:
        """List the questions, each with True if it needs an approval."""
        session = await self.sessions.open(key)
        turn, role = session.turn, self.access.find_role(message)
        if turn is None or role is None or not session.is_waiting:
            return []
        rights = await find_rights(self.engine, self.access, session, message, role)
        meant = [name for name in rights.names if rights.is_own or not is_approval(turn, name)]
        ids = {own_reply_id_of(turn.turn_id, name): is_approval(turn, name) for name in meant}
        where = subjects.reply_pattern_of_session(session.key)
        found = records.read_all(self.engine, where, records.OwedReply, turn.on)
        return [(kept.reply, ids[kept.reply.id]) async for _, kept in found if kept.reply.id in ids]
