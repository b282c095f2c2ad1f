"""What is asked in a session, for whoever comes to its terminal anew: no word answers what they have not seen.

A person at a terminal has many processes, and a question was perhaps shown in another one, or in none. So each says
which it has shown; those of one message alone (`chat -m`) also answer what a process before them has shown, where the
words can be nothing but an answer.
"""

from collections.abc import Collection

from gateway.dispatcher.chat_commands import find_command
from gateway.dispatcher.commands import parse_command
from gateway.dispatcher.context import DispatcherContext
from gateway.dispatcher.ingress import NO_WORDS
from gateway.dispatcher.question_rights import find_rights, is_approval
from gateway.dispatcher.shown_questions import own_reply_id_of
from gateway.events import YES_WORDS
from gateway.messages.message import Message, Reply
from gateway.records import records, subjects
from gateway.sessions.keys import session_key_of


class TerminalQuestions:
    """Finds those that are open."""

    def __init__(self, context: DispatcherContext) -> None:
        self._context = context

    async def list_open(self, message: Message) -> list[Reply]:
        """As they were put to the sender of this message, who would answer them by a text."""
        return [reply for reply, _ in await self._find_open(message)]

    async def find_unseen(self, message: Message, shown: Collection[str], before: Collection[str]) -> list[Reply]:
        """Those before which this message must wait; `shown`: by the process from which it comes; `before`: by others
        in whose place it speaks.
        """
        typed = parse_command(message.text)
        role = self._context.access.find_role(message)
        if role is None or (typed and find_command(self._context, typed.word, role)):
            return []
        asked = await self._find_open(message)
        said = message.text.strip().lower() in YES_WORDS | NO_WORDS
        known = {*shown, *before}
        is_seen = all(reply.id in known and (reply.id in shown or said or not needs_yes) for reply, needs_yes in asked)
        return [] if is_seen else [reply for reply, _ in asked]

    async def _find_open(self, message: Message) -> list[tuple[Reply, bool]]:
        """Each with whether it wants a yes."""
        session = await self._context.sessions.open(session_key_of(message, self._context.keys))
        turn, role = session.turn, self._context.access.find_role(message)
        if turn is None or role is None or not session.is_waiting:
            return []
        rights = await find_rights(self._context, session, message, role)
        meant = [name for name in rights.names if rights.is_own or not is_approval(turn, name)]
        ids = {own_reply_id_of(turn.turn_id, name): is_approval(turn, name) for name in meant}
        where = subjects.reply_pattern_of_session(session.key)
        found = records.read_all(self._context.engine, where, records.OwedReply, turn.on)
        return [(kept.reply, ids[kept.reply.id]) async for _, kept in found if kept.reply.id in ids]
