"""The rules of each chat and thread: if the bot answers there, which agent, and how. See `rules`, then `journal`.

`heard_messages` remembers messages to others in quiet chats.
"""
