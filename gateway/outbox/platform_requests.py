"""What is asked of a platform's sending end beside replies, wherever that is: whether it is there, and that a question
be closed. Whoever serves the platform answers, on this node or another. One that is no network (the terminal, the page)
several nodes serve: each does what is asked, which is the same however often it is done, and the first answer counts.

What is said past the journal, because that takes nothing, is not among these: where the journal is ill nobody else is
reached either.
"""

from dataclasses import replace

import msgspec

from gateway.engine.interface import Engine, RequestHandler
from gateway.errors import AdapterError, EngineError
from gateway.messages.message import LiteralText, Reply
from gateway.outbox.interface import MessageIds, Transport
from gateway.records import subjects

CLOSE_PATIENCE = 30.0  # seconds for a network to take it; asked anew it is the same
LOOK_PATIENCE = 2.0
SETTLED = "Settled:"


class CloseQuestion(msgspec.Struct, frozen=True):
    """Take the buttons away from a question that was sent, and write below it what became of it."""

    reply: Reply
    message_ids: MessageIds
    text: str


class PlatformAnswer(msgspec.Struct, frozen=True):
    """How that went; an `error` is an AdapterError's."""

    error: str = ""
    permanent: bool = False
    retry_after: float | None = None


def make_handler(transport: Transport) -> RequestHandler:
    """Answers for a platform that is served here; a request for nothing only asks whether it is."""

    async def answer(data: bytes) -> bytes:
        try:
            if data:
                await close_shown_question(transport, msgspec.json.decode(data, type=CloseQuestion))
        except AdapterError as error:
            return msgspec.json.encode(PlatformAnswer(str(error), error.permanent, error.retry_after))
        return msgspec.json.encode(PlatformAnswer())

    return answer


async def is_served(engine: Engine, platform: str) -> bool:
    """Asks whether somebody serves this platform now."""
    try:
        await engine.request(subjects.request_subject_of(platform), b"", LOOK_PATIENCE)
    except (TimeoutError, EngineError):
        return False
    return True


async def close_question(engine: Engine, closed: CloseQuestion) -> None:
    """Raises AdapterError: its platform does not take that now."""
    platform = closed.reply.address.served_as
    subject, data = subjects.request_subject_of(platform), msgspec.json.encode(closed)
    try:
        answer = msgspec.json.decode(await engine.request(subject, data, CLOSE_PATIENCE), type=PlatformAnswer)
    except (TimeoutError, EngineError) as error:
        raise AdapterError(f"{platform} is not connected: {error}") from error
    if answer.error:
        raise AdapterError(answer.error, permanent=answer.permanent, retry_after=answer.retry_after)


async def close_shown_question(transport: Transport, asked: CloseQuestion) -> None:
    """Raises AdapterError."""
    reply, parts = asked.reply, transport.parts
    last = max(parts(reply) - len(reply.attachments) - 1, 0)  # where the buttons are
    words = (LiteralText(SETTLED, asked.text),) if reply.literals else ()
    closed = replace(reply, text=f"{reply.text}\n\n{asked.text}", literals=(*reply.literals, *words), buttons=())
    if parts(closed) == parts(reply):
        await transport.edit(closed, last, asked.message_ids[last])
    else:
        closed = replace(reply, text=asked.text, literals=words, attachments=(), buttons=())
        await transport.edit(closed, 0, asked.message_ids[last])
