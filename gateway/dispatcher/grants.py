"""What a hook may have done through the gateway, if its manifest says that it uses it: send, submit, emit, store."""

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from gateway import records
from gateway.access import INTERNAL
from gateway.catalogue import point
from gateway.dispatcher.house import House
from gateway.engine import Put
from gateway.errors import HookError
from gateway.messages import Address, Message, Receipt, Reply

Accept: TypeAlias = Callable[[Message, str], Awaitable[Receipt]]

TEXT_LIMIT = 100_000
VALUE_LIMIT = 256_000


class Send(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`send(to, text)`: a session key, or `platform:chat` and perhaps `:thread`."""

    to: str
    text: str


class Submit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`submit(text, session, deliver)`: work for the agent, in a session of this name or key.

    The answer goes to `deliver` (as `to` above), or to the chat of the session; else it stays in the session.
    """

    text: str
    session: str = ""
    deliver: str = ""


class Emit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`emit(name, **fields)`: an event of the hook's own making."""

    name: str
    fields: dict[str, Any] = {}


class Keep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The store's verbs."""

    key: str = ""
    value: Any = None
    default: Any = None


class Grants:
    """Serves the requests of all hooks. Who may ask for what is decided before, by the manifest."""

    def __init__(self, house: House, accept: Accept) -> None:
        self._house = house
        self._accept = accept
        self._verbs: Mapping[str, Callable[[str, dict[str, Any]], Awaitable[Any]]] = {
            "send": self._send,
            "submit": self._submit,
            "emit": self._emit,
            "store.get": self._get,
            "store.set": self._set,
            "store.delete": self._delete,
            "store.keys": self._keys,
        }

    async def __call__(self, hook: str, verb: str, params: dict[str, Any], _during: str) -> Any:
        """Do what a hook asks for.

        Raises:
            HookError: there is no such thing, or not with these parameters.
        """
        if verb not in self._verbs:
            raise HookError(f"the gateway has no `{verb}` for hooks; there is {', '.join(self._verbs)}")
        try:
            return await self._verbs[verb](hook, params)
        except msgspec.ValidationError as error:
            raise HookError(f"{verb}: {error}") from None

    async def _send(self, _hook: str, params: dict[str, Any]) -> Any:
        asked = msgspec.convert(params, Send)
        if not asked.text or len(asked.text) > TEXT_LIMIT:
            raise HookError(f"send: a text has 1 to {TEXT_LIMIT} characters, this one {len(asked.text)}")
        address, key = await self._place(asked.to)
        reply = Reply(uuid.uuid4().hex, address, asked.text)
        return {"seq": await self._house.outbox.post(reply, key), "id": reply.id}

    async def _submit(self, hook: str, params: dict[str, Any]) -> Any:
        asked = msgspec.convert(params, Submit)
        key = asked.session if asked.session.startswith("agent:") else internal_key(asked.session or hook)
        if asked.deliver:
            address, _ = await self._place(asked.deliver)
        else:
            address = await self._address_of(key) or Address(INTERNAL, asked.session or hook)
        message = Message(
            uuid.uuid4().hex, address, f"hook:{hook}", asked.text, kind="internal", session=key, sent_at=time.time()
        )
        receipt = await self._accept(message, key)
        return {"session_key": key, "seq": receipt.seq}

    async def _emit(self, hook: str, params: dict[str, Any]) -> Any:
        asked = msgspec.convert(params, Emit)
        if point(asked.name) is not None:
            raise HookError(f"emit: {asked.name} is told by the gateway alone; a hook's events have names of their own")
        self._house.registry.emit(asked.name, **{**asked.fields, "hook": hook})

    async def _get(self, hook: str, params: dict[str, Any]) -> Any:
        asked = msgspec.convert(params, Keep)
        record = await self._house.engine.last(records.kept_subject(hook, asked.key))
        kept = records.decode(record.data) if record else None
        return kept.value if isinstance(kept, records.Stored) else asked.default

    async def _set(self, hook: str, params: dict[str, Any]) -> Any:
        asked = msgspec.convert(params, Keep)
        data = records.encode(records.Stored(hook=hook, key=asked.key, value=asked.value))
        if len(data) > VALUE_LIMIT:
            raise HookError(f"store: {asked.key!r} takes {len(data)} bytes; {VALUE_LIMIT} are the most")
        subject = records.kept_subject(hook, asked.key)
        (seq,) = await self._house.engine.append(Put(subject, data))
        await self._house.engine.purge(subject, seq - 1)

    async def _delete(self, hook: str, params: dict[str, Any]) -> Any:
        asked = msgspec.convert(params, Keep)
        return bool(await self._house.engine.purge(records.kept_subject(hook, asked.key)))

    async def _keys(self, hook: str, _params: dict[str, Any]) -> list[str]:
        found = await self._house.engine.read(records.kept_subject(hook), limit=10_000)
        kept = [records.decode(record.data) for record in found]
        return sorted(one.key for one in kept if isinstance(one, records.Stored))

    async def _place(self, to: str) -> tuple[Address, str]:
        """Where `to` is, and the session that it belongs to."""
        if to.startswith("agent:"):
            address = await self._address_of(to)
            if address is None:
                raise HookError(f"send: nobody ever wrote in the session {to}")
            return address, to
        platform, _, rest = to.partition(":")
        chat, _, thread = rest.partition(":")
        if not platform or not chat:
            raise HookError(f"send: {to!r} is no place; write a session key, or platform:chat")
        return Address(platform, chat, thread_id=thread), ""

    async def _address_of(self, key: str) -> Address | None:
        """Where a session's last message came from."""
        record = await self._house.engine.last(records.subject("in", key))
        kept = records.decode(record.data) if record else None
        return kept.message.address if isinstance(kept, records.Inbound) else None


def internal_key(name: str) -> str:
    """The key of a session that no chat has: what hooks let the agent do."""
    return f"agent:main:{INTERNAL}:dm:{name}"
