"""The requests that a hook may make of the gateway, if its manifest grants them: send, submit, emit, facts, store."""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

import msgspec

from gateway.access.access_control import INTERNAL
from gateway.dispatcher.awaited_turns import AWAITED, AwaitedTurns
from gateway.dispatcher.context import DispatcherContext
from gateway.errors import AdapterError, HookError
from gateway.events.catalogue import get_event_spec
from gateway.hooks.cause import RIGHTS, find_person
from gateway.lanes.lanes import Lanes
from gateway.messages.authors import HOOK
from gateway.messages.message import Address, Message, Reply
from gateway.messages.parts import Location, Poll, add_words, check_part
from gateway.messages.roles import pick_low_role
from gateway.records import records, subjects
from gateway.records.stores import make_value_put, read_store

TEXT_LIMIT = 100_000
VALUE_LIMIT = 256_000


MOST_PARTS = 4  # of polls and places in one message of a hook


class SendRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request `send(to, text)`.

    `to` is a session key, `platform:chat[:thread]`, a platform (its home channel), or `home`. `parts` are polls and
    places; a network that cannot show a part gets its description.
    """

    to: str
    text: str
    parts: Annotated[tuple[Poll | Location, ...], msgspec.Meta(max_length=MOST_PARTS)] = ()


class SubmitRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request `submit(text, session, deliver, wait)`: a task for the agent, in a session with this name or key.

    The answer goes to `deliver` (like `to` of `send`) or to the chat of the session, if the hook may `send`. If the
    session has no chat, the answer stays in the session. With `wait`, the hook also gets the answer, and the gateway
    stops the turn after so many seconds.
    """

    text: str
    session: str = ""
    deliver: str = ""
    wait: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0


class EmitRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request `emit(name, **fields)`, for an event of the hook's own."""

    name: str
    fields: dict[str, Any] = {}


class StoreRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of the requests `store.get`, `store.set` and `store.delete`."""

    key: str = ""
    value: Any = None
    default: Any = None


class HookRequests:
    """Answers the requests of all hooks. The callers check the grants in the manifest of a hook."""

    def __init__(self, context: DispatcherContext, lanes: Lanes) -> None:
        self._context = context
        self._lanes = lanes
        self.waiting = AwaitedTurns(context.engine, lanes)
        self.verbs: Mapping[str, tuple[type, Callable[[str, Any], Awaitable[Any]]]] = {
            "send": (SendRequest, self._send),
            "submit": (SubmitRequest, self._submit),
            "emit": (EmitRequest, self._emit),
            "facts": (dict, self._facts),
            "store.get": (StoreRequest, self._get),
            "store.set": (StoreRequest, self._set),
            "store.delete": (StoreRequest, self._delete),
            "store.keys": (dict, self._keys),
        }

    async def __call__(self, hook: str, verb: str, params: dict[str, Any], _during: str) -> Any:
        """Carry out a hook's request.

        Raises:
            HookError: the request is unknown, or its parameters are wrong.
        """
        if verb not in self.verbs:
            raise HookError(f"the gateway has no `{verb}` for hooks; there is {', '.join(self.verbs)}")
        kind, answer = self.verbs[verb]
        try:
            return self._context.registry.withheld.cut(await answer(hook, msgspec.convert(params, kind)))
        except msgspec.ValidationError as error:
            raise HookError(f"{verb}: {error}") from None

    async def _send(self, _hook: str, asked: SendRequest) -> Any:
        if len(asked.text) > TEXT_LIMIT or not (asked.text or asked.parts):
            raise HookError(f"send: a text has 1 to {TEXT_LIMIT} characters, this one {len(asked.text)}")
        try:
            parts = tuple(map(check_part, asked.parts))
        except ValueError as error:
            raise HookError(f"send: {error}") from None
        address, key = await self._find_place(asked.to)
        text = add_words(asked.text, parts)
        reply = Reply(uuid.uuid4().hex, address, text, role=RIGHTS.get(), parts=parts)
        seq = await self._context.outbox.post(reply, key, cause=self._context.registry.current_cause)
        return {"seq": seq, "id": reply.id, "platform": address.platform, "chat_id": address.chat_id}

    async def _submit(self, hook: str, asked: SubmitRequest) -> Any:
        key = asked.session if asked.session.startswith("agent:") else make_internal_key(asked.session or hook)
        if asked.deliver:
            address, _ = await self._find_place(asked.deliver)
        else:
            address = await self._address_of(key) or Address(INTERNAL, asked.session or hook)
        limits, role = self._context.agents.find_limits(hook), RIGHTS.get()
        if address.platform != INTERNAL and "send" not in limits.uses:
            raise HookError(
                f"{hook} may not have answers sent to {address.platform}: add `uses: [submit, send]` to its HOOK.yaml"
            )
        message = Message(
            uuid.uuid4().hex,
            address,
            f"{HOOK}{hook}",
            asked.text,
            kind="internal",
            session=key,
            sent_at=self._context.engine.clock.latest(),
            extra={AWAITED: self._context.settings.run_id} if asked.wait else {},
            cause=self._context.registry.current_cause,
            role=pick_low_role(role, "user") if limits.is_restricted else role,
            person=find_person(hook),
        )
        if asked.wait:
            answered = await self.waiting.answer(message, key, asked.wait)
            return {"session_key": key, **msgspec.to_builtins(answered)}
        return {"session_key": key, "seq": await self._lanes.accept(message, key) or 0}

    async def _facts(self, _hook: str, _asked: dict[str, Any]) -> Any:
        commands = [
            {"name": one.name, "summary": one.summary, "usage": one.usage, "aliases": one.aliases, "urgent": one.urgent}
            for one in self._context.commands.values()
            if not one.hidden
        ]
        return {**msgspec.to_builtins(self._context.places.about()), "commands": commands}

    async def _emit(self, hook: str, asked: EmitRequest) -> Any:
        if get_event_spec(asked.name) is not None:
            raise HookError(f"emit: {asked.name} comes from the gateway alone; a hook's events have names of their own")
        self._context.registry.emit(asked.name, **{**asked.fields, "hook": hook, "rights": RIGHTS.get()})
        await self._context.registry.recorders.settled()

    async def _get(self, hook: str, asked: StoreRequest) -> Any:
        where = subjects.hook_store_subject_of(hook, asked.key)
        _, kept = await records.read_last(self._context.engine, where, records.StoredValue)
        return kept.value if kept else asked.default

    async def _set(self, hook: str, asked: StoreRequest) -> Any:
        put = make_value_put(hook, asked.key, asked.value)
        if len(put.data) > VALUE_LIMIT:
            raise HookError(f"store: {asked.key!r} takes {len(put.data)} bytes; {VALUE_LIMIT} are the most")
        (seq,) = await self._context.engine.append(put)
        await self._context.engine.purge(put.subject, seq - 1)

    async def _delete(self, hook: str, asked: StoreRequest) -> Any:
        return bool(await self._context.engine.purge(subjects.hook_store_subject_of(hook, asked.key)))

    async def _keys(self, hook: str, _asked: dict[str, Any]) -> list[str]:
        return sorted([kept.key async for _, kept in read_store(self._context.engine, hook)])

    async def _find_place(self, to: str) -> tuple[Address, str]:
        try:
            return await self.find_place(to)
        except AdapterError as error:
            raise HookError(f"send: {error}") from None

    async def find_place(self, to: str) -> tuple[Address, str]:
        """Return the address of `to`, and the session key if `to` is a session key.

        Raises:
            AdapterError: the chat or session was not found.
        """
        if to.startswith("agent:"):
            address = await self._address_of(to)
            if address is None:
                raise AdapterError(f"no message ever came in the session {to}")
            return address, to
        return self._context.places.resolve_destination(to, role=RIGHTS.get()), ""

    async def _address_of(self, key: str) -> Address | None:
        """Return the address of a session's last message; if the message is gone, the address of the session."""
        where = subjects.session_subject_of("in", key)
        _, kept = await records.read_last(self._context.engine, where, records.InboundMessage)
        return kept.message.address if kept else (await self._context.sessions.open(key)).address


def make_internal_key(name: str) -> str:
    """Return the key of a session without a chat, for tasks of hooks."""
    return f"agent:main:{INTERNAL}:dm:{name}"
