"""The author of a text, beside its role: the role says what a turn may do, the author whose words these are.

A person is called by their role, `owner` to `guest`; their words alone are commands. All others have a name:
`hook:NAME`, `webhook:NAME`, `api:KEY` (a program), `job` (a reminder), `mcp:SERVER` and `agent:NAME`. Their words are a
text for the agent, whatever the role of the turn is: it runs no command, approves and answers nothing, and pairs no
person. Two exceptions: a program types commands for itself, and a hook with `uses: [send]` sends where it likes.
"""

from collections.abc import Collection

HOOK = "hook:"  # begins the ids of those who speak for a hook
WEBHOOK = "webhook:"
PROGRAM = "api:"
JOB = "job"


def find_hook(author: str) -> str:
    """Return the name of the hook that is this author; empty: the author is no hook."""
    return author.removeprefix(HOOK) if author.startswith(HOOK) else ""


def find_author(sender: str) -> str:
    """Return the author of what this sender wrote, as `telegram:1002`; empty: a person."""
    platform, _, user = sender.partition(":")
    if f"{platform}:" == PROGRAM:
        return f"{PROGRAM}{user.partition(':')[0]}"
    return user if user.startswith((HOOK, WEBHOOK)) else ""


def can_command(author: str) -> bool:
    """Is a command in a text of this author one? A person's text has no author here."""
    return not author or author.startswith(PROGRAM)


def can_send(author: str, uses: Collection[str]) -> bool:
    """May a turn that this author began send to other chats than its own? `uses` are those of the hook's manifest."""
    return not author or (bool(find_hook(author)) and "send" in uses)


def describe_hook(name: str) -> str:
    """Return how the record of activity calls a hook."""
    return f"the hook {name}"
