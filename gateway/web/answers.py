"""Answers about API keys of programs, and about logins of people."""

from typing import Any

from gateway.records.records import ProgramKey
from gateway.verbs import NameParams
from gateway.web.logins import Logins
from gateway.web.program_keys import ProgramKeys


async def keys_list(keys: ProgramKeys) -> Any:
    return {"keys": [describe_key(one) for one in keys.keys]}


async def keys_revoke(keys: ProgramKeys, params: NameParams) -> Any:
    return describe_key(await keys.revoke(params.name))


async def web_end(logins: Logins) -> Any:
    return {"ended": await logins.end()}


def describe_key(key: ProgramKey) -> dict[str, Any]:
    """Describe a key for people; the description cannot be used as a key."""
    return {"name": key.name, "role": key.role, "agent": key.agent, "at": key.at}
