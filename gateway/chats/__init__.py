"""What holds in each chat and thread: whether it is answered there, by whom and how. See `rules`, then `journal`."""

from gateway.chats.journal import ChatJournal
from gateway.chats.rules import CHANGEABLE, ChatDisplay, ChatRule, ChatRules, FindDisplay, RuleName

__all__ = ["CHANGEABLE", "ChatDisplay", "ChatJournal", "ChatRule", "ChatRules", "FindDisplay", "RuleName"]
