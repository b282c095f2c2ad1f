"""What holds in each chat and thread: whether it is answered there, by whom and how. See `rules`, then `journal`.

What is said in quiet chats to others is remembered in `heard_messages`.
"""

from gateway.chats.heard_messages import HeardMessages
from gateway.chats.journal import ChatJournal
from gateway.chats.rules import CHANGEABLE, ChatDisplay, ChatRule, ChatRules, FindDisplay, RuleName

__all__ = [
    "CHANGEABLE",
    "ChatDisplay",
    "ChatJournal",
    "ChatRule",
    "ChatRules",
    "FindDisplay",
    "HeardMessages",
    "RuleName",
]
