"""The port of this gateway: the page, the calls of programs and webhooks, the readiness, and the figures."""

from collections.abc import Iterator, Mapping
from functools import partial

import anyio
import anyio.abc

from gateway.adapters.page.chat import PageChat
from gateway.adapters.page.stream import ChatStream
from gateway.config.loading import Configuration
from gateway.control.server import VerbAnswer
from gateway.daemon.desk import DeskSocket
from gateway.daemon.groups.hooks import Hooks
from gateway.daemon.groups.networks import Networks
from gateway.daemon.groups.people import People, list_agent_names
from gateway.daemon.groups.process import Base, BindGroups, Run
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.turns import Turns
from gateway.daemon.metrics import PortMetrics, collect_metrics
from gateway.daemon.webhooks import WebhookStatus, list_webhook_statuses, list_webhooks
from gateway.events.verbs import TailParams, cut_event
from gateway.installation import find_program_name
from gateway.verbs import Notify
from gateway.web.chat import ChatRoom
from gateway.web.event_stream import EventRoom, EventStream
from gateway.web.free_port import FreePort
from gateway.web.host_rules import HostRules, build_host_rules
from gateway.web.key_check import KeyCheck
from gateway.web.live_stream import LiveStreams
from gateway.web.networks import NetworkReceiver
from gateway.web.openai.calls import ProgramCalls
from gateway.web.openai.server import ProgramServer
from gateway.web.page import PROTECTED, Page
from gateway.web.page_verbs import PageVerbs
from gateway.web.port import AnswerRequest, PortError, Router, WebPort, load_certificate
from gateway.web.probes import Probes, Reason
from gateway.web.visitors import Visitors
from gateway.web.webhooks.intake import WebhookIntake
from gateway.web.webhooks.receiver import Webhook, WebhookReceiver
from gateway.yaml_source.tree import Finding


class GatewayPage:
    """The page that people see in a browser, and the tasks that keep it up to date."""

    def __init__(
        self,
        base: Base,
        storage: Storage,
        people: People,
        turns: Turns,
        networks: Networks,
        rules: HostRules,
        verbs: Mapping[str, VerbAnswer],
    ) -> None:
        redactor, logins = base.redactor, people.logins
        feed = EventStream(partial(tail_events, verbs), redactor.clean_all, cut_event)
        stream = ChatStream(base.engine, turns.lanes, storage.search)
        streams, chats = LiveStreams(logins), PageChat(networks.adapter_context)
        chat = ChatRoom(chats, stream, streams, PROTECTED, redactor.clean)
        events = EventRoom(feed, streams, PROTECTED, verbs["events.tail"].verb.role, storage.activity, chats.find_role)
        rooms = {"chat": chat.answer, "live": events.answer}
        visitors = Visitors(rules, logins, chats.find_role, base.settings.web.identity)
        program = find_program_name(base.current.configuration.environ)
        shown = PageVerbs(verbs, redactor.clean)
        page = Page(rules, logins, visitors, shown, storage.activity, rooms, program)
        self.answer = page.answer
        self.followers = (feed.run, stream.run)


def build_receiver(base: Base, hooks: Hooks, turns: Turns, rules: HostRules) -> WebhookReceiver:
    intake = WebhookIntake(base.engine, base.registry, turns.lanes, turns.hook_requests)
    return WebhookReceiver(lambda: list_webhooks(base.current.configuration, hooks.folder_hooks), intake, rules)


def find_free_port(base: Base, people: People, hooks: Hooks) -> FreePort | None:
    """Return the choice among free ports; None if a setting, a proxy, a program or a webhook relies on the address."""
    configuration, web = base.current.configuration, base.settings.web
    is_named = any(f"web.{name}" in configuration.origins for name in ("listen", "url", "hosts", "trusted_proxies"))
    if is_named or people.keys.keys or list_webhooks(configuration, hooks.folder_hooks):
        return None
    return FreePort(web.listen, base.home.port)


def build_calls(base: Base, storage: Storage, turns: Turns) -> ProgramCalls:
    return ProgramCalls(base.engine, storage.sessions, turns.dispatcher.receive, turns.lanes.interrupt)


class GatewayWeb:
    """The port and the counts of its calls. `bind` passes groups to the functions of the port."""

    def __init__(
        self,
        base: Base,
        people: People,
        turns: Turns,
        networks: Networks,
        bind: BindGroups,
        verbs: Mapping[str, VerbAnswer],
        desk: DeskSocket,
    ) -> None:
        web = base.settings.web
        rules = build_host_rules(web)
        self._page: GatewayPage = bind(GatewayPage)(rules, verbs)
        keys = KeyCheck(people.keys, rules)
        self._receiver: WebhookReceiver = bind(build_receiver)(rules)
        metrics = partial(bind(collect_metrics), PortMetrics(turns.times, self._receiver.counts))
        probes = Probes(rules.is_open, keys, bind(list_reasons), metrics, base.redactor.clean)
        self._calls: ProgramCalls = bind(build_calls)()
        self._programs = ProgramServer(keys, people.keys, self._calls, partial(list_agent_names, base.current))
        routes: dict[str, AnswerRequest] = dict.fromkeys(("health", "ready", "metrics"), probes.answer)
        routes["v1"] = self._programs.answer
        routes["desk"] = partial(desk.answer_request, keys)
        routes["webhooks"] = self._receiver.answer
        routes["networks"] = NetworkReceiver(networks.adapter_context.routes, rules).answer
        is_named = "web.listen" in base.current.configuration.origins
        answer = Router(rules, routes, self._page.answer).answer
        self.port = WebPort(web, answer, is_named=is_named, find_free=bind(find_free_port))

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. Raises PortError if the port cannot be opened."""
        async with anyio.create_task_group() as tasks:
            for follow in (*self._page.followers, self._calls.sweep):
                tasks.start_soon(follow)
            await self.port.serve(task_status=task_status)

    def describe(self) -> dict[str, str]:
        """Describe the port for `status`."""
        return {"url": self.port.url, "trouble": self.port.trouble}

    def list_webhooks(self, webhooks: Mapping[str, Webhook], public_url: str) -> Iterator[WebhookStatus]:
        """List the webhooks for `status`, with their public addresses."""
        url = (public_url or self.port.local_url) if self.port.url else ""
        return list_webhook_statuses(webhooks, url, self._receiver.counts)

    def count_calls(self) -> dict[str, int]:
        """Count the running calls of programs by the name of the program's key."""
        return {key: count for key, count in self._programs.running.items() if count}


def find_bad_certificate(configuration: Configuration) -> Iterator[Finding]:
    """Find mistakes in the certificate of the port before a start fails because of them."""
    web = configuration.settings.web
    try:
        load_certificate(web)
    except PortError as error:
        what, _, remedy = str(error).partition("\n")
        yield Finding(configuration.origins["web.tls.cert"], what, remedy, "warning")


async def tail_events(verbs: Mapping[str, VerbAnswer], notify: Notify) -> None:
    """Watch events like the command `events tail`."""
    await verbs["events.tail"].answer(TailParams(), notify)


async def list_reasons(base: Base, run: Run, networks: Networks) -> list[Reason]:
    """List why the gateway is not ready: the parts that should be up and are not; a paused part does not count."""
    found = [] if run.state == "ready" else [Reason("gateway", run.state, "")]
    health = await base.engine.health()
    if not health.ok:
        found.append(Reason("journal", "down", health.detail))
    down = {one.name: one.presence.facts.detail for one in networks.platforms if one.state == "down"}
    for part in run.parts:
        facts, is_down = part.facts, part.name in down
        if is_down or facts.state not in ("up", "standby", "paused"):
            detail = base.redactor.clean(down.get(part.name) or facts.detail)
            found.append(Reason(part.name, "down" if is_down else facts.state, detail))
    return found
