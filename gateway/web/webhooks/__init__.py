"""What is called from outside, by `POST /webhooks/NAME`: who calls, what they say, and what becomes of it.

`senders.py` knows those who call and how they show it, `content.py` reads what they say, `receiver.py` answers them,
and `intake.py` writes what came into the journal before it is told to hooks, or asked of an agent.
"""
