"""The author of a text, beside its role: the role says what a turn may do, the author whose words these are.

A person is known by their role, `owner` to `guest`; only a person's words are commands. All other authors have a name:
`hook:NAME`, `webhook:NAME`, `api:KEY` (a program), `job` (a job), `mcp:SERVER`, `agent:NAME` and `desk:NAME` (an agent
on the desk of this person, or with this key). Their words are a text for the agent, whatever the role of the turn: such
a text runs no command, approves and answers nothing, and pairs no person. Two exceptions: a program types commands for
itself, and a hook with `uses: [send]` may send to any chat.
"""

from collections.abc import Collection

HOOK = "hook:"  # starts the ids of senders that speak for a hook
WEBHOOK = "webhook:"
PROGRAM = "api:"
DESK = "desk:"
JOB = "job"


def find_hook(author: str) -> str:
    """Return the hook's name if the author is a hook, else ""."""
    return author.removeprefix(HOOK) if author.startswith(HOOK) else ""


def find_author(sender: str) -> str:
    """Return the author of a sender's texts (`telegram:1002`); "" for a person."""
    platform, _, user = sender.partition(":")
    if f"{platform}:" in (PROGRAM, DESK):
        return f"{platform}:{user.partition(':')[0]}"
    return user if user.startswith((HOOK, WEBHOOK)) else ""


def can_command(author: str) -> bool:
    """Return True if a command by this author runs. A person's text has no author here."""
    return not author or author.startswith(PROGRAM)


def can_send(author: str, uses: Collection[str]) -> bool:
    """Return True if a turn by this author may send to other chats. `uses` is from the hook's manifest."""
    return not author or (bool(find_hook(author)) and "send" in uses)


def describe_hook(name: str) -> str:
    """Return the hook's name for the activity log."""
    return f"the hook {name}"
