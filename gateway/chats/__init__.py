"""What holds in each chat and thread: whether it is answered there, by whom and how. See `rules`, then `journal`.

What is said in quiet chats to others is remembered in `heard_messages`.
"""
