"""What the control socket answers about who is let in at the port: programs by keys, people by a link.

A key is told once, to whoever made it; a link is the owner's, since whoever reaches the socket is the owner.
"""

from typing import Any

from gateway.daemon.gateway import Gateway
from gateway.errors import AccessError
from gateway.records.records import ProgramKey
from gateway.verbs import NameParams
from gateway.web.logins import LINK_SECONDS, make_page_link
from gateway.web.openai.calls import forget_calls
from gateway.web.verbs import KeyCreateParams


async def keys_create(gateway: Gateway, params: KeyCreateParams) -> Any:
    if params.agent and params.agent not in gateway.agents.names:
        names = ", ".join(sorted(gateway.agents.names))
        raise AccessError(f"there is no agent {params.agent!r}\nthose that the configuration names: {names}")
    if params.name not in {one.name for one in gateway.keys.keys}:
        await forget_calls(gateway.engine, gateway.sessions, params.name)
    return {"name": params.name, "key": await gateway.keys.create(params.name, params.role, params.agent)}


async def keys_list(gateway: Gateway) -> Any:
    return {"keys": [describe_key(one) for one in gateway.keys.keys]}


async def keys_revoke(gateway: Gateway, params: NameParams) -> Any:
    return describe_key(await gateway.keys.revoke(params.name))


def describe_key(key: ProgramKey) -> dict[str, Any]:
    """Without what tells it again."""
    return {"name": key.name, "role": key.role, "agent": key.agent, "at": key.at}


async def web_open(gateway: Gateway) -> Any:
    web, settings = gateway.web, gateway.settings.web
    if web is None or not web.port.url:
        raise AccessError(f"there is no page: {describe_no_port(gateway)}")
    # Where a proxy says who somebody is, no link is good behind it: this one leads past it.
    url = web.port.local_url if settings.identity or not settings.url else settings.url
    link = make_page_link(url, await gateway.logins.open_link())
    return {"url": link, "seconds": LINK_SECONDS}


def describe_no_port(gateway: Gateway) -> str:
    if gateway.web:
        return gateway.web.port.trouble or "the port is not open: hermes-gateway status"
    if gateway.settings.web.enabled:
        return "this gateway does not do `web`, by `node.roles` or `run --roles`; ask one that does"
    return "web.enabled is false"


async def web_end(gateway: Gateway) -> Any:
    return {"ended": await gateway.logins.end()}
