"""The reports of the gateway for a chat, and the functions that people call from a chat."""

from functools import partial

from gateway.daemon.groups.hooks import Hooks
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base, NodePresence, Run
from gateway.daemon.groups.work import Work
from gateway.daemon.hooks import describe_hooks, describe_letters, list_dead_hooks
from gateway.daemon.parts import describe_parts
from gateway.daemon.platforms import list_links
from gateway.dispatcher.context import GatewayReports
from gateway.errors import AccessError, ExitCode
from gateway.messages.roles import Role
from gateway.web.logins import make_page_link


def build_reports(
    base: Base, run: Run, presence: NodePresence, people: People, hooks: Hooks, work: Work
) -> GatewayReports:
    folder_hooks, steering = hooks.folder_hooks, presence.steering
    return GatewayReports(
        status=lambda: f"hermes-gateway is {run.state}; model {work.agents.now.model_description}",
        hooks=partial(describe_hooks, folder_hooks),
        letters=partial(describe_letters, folder_hooks),
        dead_hooks=partial(list_dead_hooks, folder_hooks),
        retry=lambda name: folder_hooks.dead_letters.retry_all(name),  # noqa: PLW0108 - set once hooks run
        platforms=lambda role: describe_parts(run.parts, [one.name for one in steering.platforms], role),
        models=lambda: work.agents.now.models,
        restart=partial(restart_gateway, base, run),
        steer=steering.steer,
        open_page=partial(open_page_for, base, run, presence, people),
        ways_in=lambda: list_links(steering.platforms),
    )


async def check_start(run: Run) -> None:
    """Check the configuration on disk. Raises ConfigError if the gateway would not start with this configuration."""
    if run.disk:
        await run.disk.check()


async def restart_gateway(base: Base, run: Run) -> None:
    """Restart the gateway. Raises ConfigError if the gateway would not start with the configuration on disk."""
    await check_start(run)
    base.shutdown.request("a restart was requested", ExitCode.RESTART)


async def open_page_for(base: Base, run: Run, presence: NodePresence, people: People, role: Role, person: str) -> str:
    """Return a link to the page, to send over a network. Raises AccessError if the page has no https address."""
    web, nodes = base.settings.web, presence.nodes
    if not web.url.lower().startswith("https:"):
        raise AccessError("the page has no https address that is known here (`web.url`)")
    if web.identity:
        raise AccessError(f"the proxy of the page says who you are; go to {web.url}")
    is_elsewhere = "web" not in nodes.roles and nodes.others.has_role("web")
    if not is_elsewhere and (run.web is None or not run.web.port.url):
        raise AccessError("the port is not open")
    return make_page_link(web.url, await people.logins.open_link(role, person))
