"""Who wrote what lately: for questions about it that the network would answer only by another call, or not at all."""

from collections import OrderedDict
from typing import NamedTuple

MOST = 2000


class RecentMessage(NamedTuple):
    """Whose, and how it began."""

    user_id: str
    beginning: str


class RecentMessages:
    """The last messages that we read, by their ids."""

    def __init__(self) -> None:
        self._words: OrderedDict[str, RecentMessage] = OrderedDict()

    def note(self, message_id: str, user_id: str, text: str) -> None:
        self._words[message_id] = RecentMessage(user_id, " ".join(text.split())[:80])
        if len(self._words) > MOST:
            self._words.popitem(last=False)

    def author(self, message_id: str) -> str:
        """Empty: not known any more."""
        return found.user_id if (found := self._words.get(message_id)) else ""

    def title(self, message_id: str) -> str:
        """What a conversation that began with this message may be called."""
        return found.beginning if (found := self._words.get(message_id)) else ""
