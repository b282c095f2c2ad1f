"""The groups of updates that are one message: the pictures of an album, or the pieces of a long text that a client cut.

Groups are in the order of their last updates, so that the place up to which everything is done only ever grows.
"""

from collections.abc import Iterable

import msgspec
from telegram import Message, Update

CUT_LENGTH = 4000  # characters: the client may have cut a text of this length


class UpdateGroup(msgspec.Struct):
    """One update, or several that are one message."""

    updates: list[Update] = msgspec.field(default_factory=list)

    @property
    def first(self) -> int:
        return self.updates[0].update_id

    @property
    def last(self) -> int:
        return self.updates[-1].update_id

    @property
    def may_grow(self) -> bool:
        """True if more updates of the message may be on their way."""
        message = self.updates[-1].message
        return message is not None and (message.media_group_id is not None or is_cut(message))

    def takes(self, update: Update) -> bool:
        """Return True if an update continues this group."""
        last, new = self.updates[-1].message, update.message
        if last is None or new is None or last.chat.id != new.chat.id or last.from_user != new.from_user:
            return False
        if last.media_group_id or new.media_group_id:
            return last.media_group_id == new.media_group_id
        return is_cut(last) and is_plain(new) and last.message_thread_id == new.message_thread_id


def group_updates(updates: Iterable[Update]) -> list[UpdateGroup]:
    """Group all updates of a poll."""
    found: list[UpdateGroup] = []
    for update in sorted(updates, key=lambda one: one.update_id):
        unit = next((unit for unit in reversed(found) if unit.takes(update)), None)
        if unit is None:
            found.append(unit := UpdateGroup())
        unit.updates.append(update)
    return sorted(found, key=lambda unit: unit.last)


def is_cut(message: Message) -> bool:
    return is_plain(message) and len(message.text or "") >= CUT_LENGTH


def is_plain(message: Message) -> bool:
    text = message.text
    return bool(text) and not (text or "").startswith("/") and message.forward_origin is None
