"""Chats by name: `discord:#general`, `discord:GUILD/#general`, `telegram:Ops`.

Anyone can give a chat any name. So a name counts only if the network lists the chat for the bot, if the configuration
names the chat, or if an owner or admin has written in it. An id is always an id: a text that looks like one is never
searched as a name. The id of a name is looked up at each use.
"""

import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches

import msgspec

from gateway.errors import AdapterError
from gateway.messages.message import Address, address_of
from gateway.messages.roles import Role, is_admin
from gateway.records.names import KnownNames, fold_name
from gateway.records.records import KnownName

NO_SUCH_CHAT = "no such chat here"
MOST_SHOWN = 10


class ChatNames(msgspec.Struct, frozen=True):
    """The chats that may be addressed by name.

    `shapes` returns the pattern of the ids of each network, and `configured` the chats that the configuration names,
    each with the name that it gives, or "".
    """

    names: KnownNames
    shapes: Callable[[], Mapping[str, str]]
    configured: Callable[[], Mapping[str, str]]

    def is_name(self, bot: str, place: str) -> bool:
        """Return True if the text is the name of a chat of this bot; False if it begins with an id."""
        shape = self.shapes().get(bot.partition(":")[0])
        is_id = shape is None or place.startswith("@") or re.fullmatch(rf"{shape}|-?\d+", re.split(r":| \(", place)[0])
        return bool(place) and not is_id

    def find(self, bot: str, text: str, role: Role) -> Address:
        """Return the chat of this bot with this name.

        Raises:
            AdapterError: no chat, or several chats, have this name. Owners and admins read which chats there are.
        """
        within, _, name = text.rpartition("/#") if "/#" in text else ("", "", text)
        found = self.list_known(bot, name, within)
        configured = self.configured()
        trusted = {one.of for one in found if one.is_trusted or one.of in configured}
        if not within:
            trusted |= {of for of, said in configured.items() if said and is_of(bot, of) and is_same(said, name)}
        if len(trusted) == 1:
            return address_of(bot, trusted.pop().removeprefix(f"{bot}:"))
        if not is_admin(role):
            raise AdapterError(NO_SUCH_CHAT)
        raise AdapterError(self._explain(bot, text, found, trusted))

    def list_known(self, bot: str, name: str, within: str = "") -> list[KnownName]:
        """List the chats of a bot (`discord:work`) with this name, in this guild or any, if they count or not."""
        wanted, around = fold_name(name), fold_name(within)
        known = [one for of, one in self.names.chats.known.items() if is_of(bot, of)]
        return [one for one in known if fold_name(one.name) == wanted and around in ("", fold_name(one.within))]

    def show(self, address: Address) -> str:
        """Return a chat as people read it: its id, with its name behind it. `send` takes this form too."""
        of = f"{address.served_as}:{address.chat_id}"
        name = self.names.chats.find(of) or self.configured().get(of, "")
        return f"{of} ({name})" if name else of

    def _explain(self, bot: str, text: str, found: list[KnownName], trusted: set[str]) -> str:
        if trusted:
            return f"{bot} has several chats {text!r}; write one of: {self._list(trusted)}"
        if found:
            why = "no owner or admin has written there"
            return f"{bot}:{text}: {NO_SUCH_CHAT}; not meant, since {why}: {self._list({one.of for one in found})}"
        names = {of: fold_name(one.name) for of, one in self.names.chats.known.items() if is_of(bot, of)}
        wanted = get_close_matches(fold_name(text.rpartition("/#")[2]), set(names.values()), MOST_SHOWN)
        near = {of for of, folded in names.items() if folded in wanted}
        return f"{bot}:{text}: {NO_SUCH_CHAT}; " + (f"did you mean {self._list(near)}?" if near else "write its id")

    def _list(self, ids: Collection[str]) -> str:
        shown = []
        for of in sorted(ids)[:MOST_SHOWN]:
            known = self.names.chats.known.get(of)
            within = f" in {known.within}" if known and known.within else ""
            shown.append(f"{of} ({known.name}{within})" if known else of)
        return ", ".join(shown)


def is_of(bot: str, chat: str) -> bool:
    return chat.rpartition(":")[0] == bot


def is_same(name: str, other: str) -> bool:
    return fold_name(name) == fold_name(other)
