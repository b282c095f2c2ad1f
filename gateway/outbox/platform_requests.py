"""Requests to a platform's sending end, on any node: check that it is there, and close a question.

The node that serves the platform answers. Several nodes serve the terminal and the page: each carries out the request,
which has the same effect however often it is done, and the first answer counts.

Sending past the journal is not among these: if the journal is ill, no other node can be reached either.
"""

from dataclasses import replace

import msgspec

from gateway.engine.interface import Engine, RequestHandler
from gateway.errors import AdapterError, EngineError
from gateway.messages.message import LiteralText, Reply
from gateway.outbox.interface import MessageIds, Transport
from gateway.records import subjects

CLOSE_PATIENCE = 30.0  # seconds for a network to take it; a repetition has the same effect
LOOK_PATIENCE = 2.0
SETTLED = "Settled:"


class CloseQuestion(msgspec.Struct, frozen=True):
    """A request to remove the buttons of a sent question, and to add the result below it."""

    reply: Reply
    message_ids: MessageIds
    text: str


class PlatformAnswer(msgspec.Struct, frozen=True):
    """The result; an `error` is an AdapterError's."""

    error: str = ""
    permanent: bool = False
    retry_after: float | None = None


def make_handler(transport: Transport) -> RequestHandler:
    """Return the handler for a platform that is served here; an empty request only checks that it is."""

    async def answer(data: bytes) -> bytes:
        try:
            if data:
                await close_shown_question(transport, msgspec.json.decode(data, type=CloseQuestion))
        except AdapterError as error:
            return msgspec.json.encode(PlatformAnswer(str(error), error.permanent, error.retry_after))
        return msgspec.json.encode(PlatformAnswer())

    return answer


async def is_served(engine: Engine, platform: str) -> bool:
    """Return True if a node serves this platform now."""
    try:
        await engine.request(subjects.request_subject_of(platform), b"", LOOK_PATIENCE)
    except (TimeoutError, EngineError):
        return False
    return True


async def close_question(engine: Engine, closed: CloseQuestion) -> None:
    """Close a question on any node. Raises AdapterError if its platform does not take that now."""
    platform = closed.reply.address.served_as
    subject, data = subjects.request_subject_of(platform), msgspec.json.encode(closed)
    try:
        answer = msgspec.json.decode(await engine.request(subject, data, CLOSE_PATIENCE), type=PlatformAnswer)
    except (TimeoutError, EngineError) as error:
        raise AdapterError(f"{platform} is not connected: {error}") from error
    if answer.error:
        raise AdapterError(answer.error, permanent=answer.permanent, retry_after=answer.retry_after)


async def close_shown_question(transport: Transport, asked: CloseQuestion) -> None:
    """Close a question here. Raises AdapterError."""
    reply, parts = asked.reply, transport.parts
    last = max(parts(reply) - len(reply.attachments) - 1, 0)  # the part with the buttons
    words = (LiteralText(SETTLED, asked.text),) if reply.literals else ()
    closed = replace(reply, text=f"{reply.text}\n\n{asked.text}", literals=(*reply.literals, *words), buttons=())
    if parts(closed) == parts(reply):
        await transport.edit(closed, last, asked.message_ids[last])
    else:
        closed = replace(reply, text=asked.text, literals=words, attachments=(), buttons=())
        await transport.edit(closed, 0, asked.message_ids[last])
