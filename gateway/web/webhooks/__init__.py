"""Webhooks: calls from outside by `POST /webhooks/NAME`, and the events and messages that they become.

`senders.py` knows the senders and their signatures, `content.py` reads a call, `receiver.py` answers it, and
`intake.py` writes it to the journal before hooks are notified or an agent gets a message.
"""
