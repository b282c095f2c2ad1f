"""Answers about access to the port: keys for programs, links for people.

The gateway shows a key once, to the person who made it. A link is for the owner: every caller of the socket is the
owner.
"""

from typing import Any

from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base, Run
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.work import Work
from gateway.errors import AccessError
from gateway.web.logins import LINK_SECONDS, make_page_link
from gateway.web.openai.calls import forget_calls
from gateway.web.verbs import KeyCreateParams


async def keys_create(base: Base, storage: Storage, people: People, work: Work, params: KeyCreateParams) -> Any:
    if params.agent and params.agent not in work.agents.now.names:
        names = ", ".join(sorted(work.agents.now.names))
        raise AccessError(f"agent {params.agent!r} not found\nthe configuration has: {names}")
    if params.name not in {one.name for one in people.keys.keys}:
        await forget_calls(base.engine, storage.sessions, params.name)
    return {"name": params.name, "key": await people.keys.create(params.name, params.role, params.agent)}


async def web_open(base: Base, run: Run, people: People) -> Any:
    web, settings = run.web, base.settings.web
    if web is None or not web.port.url:
        raise AccessError(f"the page is off: {describe_no_port(base, run)}")
    # A proxy that authenticates people accepts no links, so this link bypasses it.
    url = web.port.local_url if settings.identity or not settings.url else settings.url
    link = make_page_link(url, await people.logins.open_link())
    return {"url": link, "seconds": LINK_SECONDS}


def describe_no_port(base: Base, run: Run) -> str:
    if run.web:
        return run.web.port.trouble or "the port is not open: hermes-gateway status"
    if base.settings.web.enabled:
        return "this gateway does not do `web`, by `node.roles` or `run --roles`; ask one that does"
    return "web.enabled is false"
