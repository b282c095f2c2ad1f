"""The transcription of voice messages: whose messages are transcribed, the events, and the cost.

A lane transcribes a message before it claims the message's turn (see `gateway.lanes.audio`). Access is checked again,
since time has passed. Hooks may supply the words, change the words, or deny the transcription.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial
from time import monotonic

import msgspec

from gateway.access.access_control import API, INTERNAL
from gateway.dispatcher.commands import parse_command
from gateway.dispatcher.context import DispatcherContext
from gateway.dispatcher.message_events import build_place_fields
from gateway.dispatcher.turn_signs import TurnSign, TurnSigns
from gateway.errors import VoiceError
from gateway.events.outcomes import find_refusal
from gateway.hooks.cause import use_cause
from gateway.hooks.scope import HookScope
from gateway.lanes.audio import TRANSCRIPTION, AudioWords
from gateway.messages.message import Attachment, Message, cause_of
from gateway.messages.roles import Role
from gateway.sessions.session import Session
from gateway.usage.call_usage import BudgetPort, CallUsage
from gateway.usage.turn_usage import TurnUsage, origin_of

DENIED = "a hook left it a file"
LONGEST_ERROR = 300


def quote_words(messages: Sequence[Message]) -> str:
    """Return the transcribed words of these messages as a quote; "" if no message has any."""
    words = [one["text"] for message in messages for one in message.extra.get(TRANSCRIPTION, ())]
    lines = "\n\n".join(filter(None, words)).splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


class AudioMessages(msgspec.Struct, eq=False):
    """The `AudioListener` of the lanes: it transcribes recordings, with the events and the budget."""

    _context: DispatcherContext
    _signs: TurnSigns

    @property
    def patience(self) -> float:
        assert self._context.voice.transcriber
        return self._context.voice.transcriber.patience

    def wants(self, message: Message) -> bool:
        """Return True for a message of an authorized sender that is neither a command nor too old for an answer."""
        transcriber = self._context.voice.transcriber
        if transcriber is None or not transcriber.is_on or message.kind not in ("text", "call"):
            return False
        is_answered = not self._context.is_too_old(message) and parse_command(message.text) is None
        return is_answered and self._context.access.find_role(message) is not None

    async def listen(self, message: Message, file: Attachment, session: Session) -> AudioWords:
        """Transcribe a file. Raises VoiceError if the transcription fails or is denied."""
        sign = TurnSign(f"audio:{message.id}", message.address, message.id, "working")
        work = partial(self._listen, message, file, session)
        return await self._signs.show(sign, work, lambda _words: "seen")

    async def _listen(self, message: Message, file: Attachment, session: Session) -> AudioWords:
        role = self._context.access.find_role(message)
        assert self._context.voice.transcriber
        (file,) = await self._context.files.shared.find_all([file])
        if role is None:
            raise VoiceError("the sender may no longer speak here", is_final=True)
        fields = build_place_fields(message, role, session) | {"turn_id": "", "agent": ""}
        view = self._context.registry.scope(fields, session_bag=dict(session.bag), answers=None)
        about, begun = dataclasses.asdict(file), monotonic()
        with use_cause(cause_of([message])):
            try:
                words = await self._ask(message, file, session, role, view)
            except VoiceError as error:
                why = self._context.settings.redact(str(error))[:LONGEST_ERROR]
                await view.run("audio:after", file=about, text="", error=why, duration=monotonic() - begun)
                raise VoiceError(why, is_final=error.is_final) from None
            duration = monotonic() - begun
            event = await view.run("audio:after", file=about, text=words.text, error="", duration=duration)
        return msgspec.structs.replace(words, text=str(event["text"]), authors=tuple(sorted(view.bags.authors[""])))

    async def _ask(
        self, message: Message, file: Attachment, session: Session, role: Role, view: HookScope
    ) -> AudioWords:
        """Return the words of the hooks, or of the transcriber if the hooks and the budget allow it."""
        transcriber = self._context.voice.transcriber
        assert transcriber
        event = await view.run(
            "audio:before", file=dataclasses.asdict(file), language=transcriber.language, result=None
        )
        if (refusal := find_refusal(event.outcome, DENIED)) is not None:
            raise VoiceError(refusal, is_final=True)
        if event["result"] is not None:
            return AudioWords(str(event["result"]))
        turn = TurnUsage(origin_of(message, session.session_id))
        usage = CallUsage(self._context.usage.totals, turn, self._make_budget_port(message, role, view))
        model = transcriber.model
        if model and (over := await usage.ask(model, 0)):
            raise VoiceError(over, is_final=True)
        found = await transcriber.transcribe(file, str(event["language"]))
        if found.usage:
            usage.count(found.usage, model, 0)
        return AudioWords(found.text, turn.waiting)

    def _make_budget_port(self, message: Message, role: Role, view: HookScope) -> BudgetPort:
        place = None if message.address.platform in (INTERNAL, API) else message.address
        return BudgetPort(role, view.run, view.emit, place, self._context.places.list_admins)
