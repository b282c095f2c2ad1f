"""The port as this gateway has it: what it listens on, when it is ready and what it is measured by."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Protocol

import anyio
import anyio.abc
import msgspec

from gateway.adapters.page.chat import PageChat
from gateway.adapters.page.stream import ChatStream
from gateway.adapters.shared.adapter import AdapterContext
from gateway.cluster.nodes import Nodes
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.control.server import Notify, Verb
from gateway.daemon.agents import Agents
from gateway.daemon.metrics import MetricSources, collect_metrics
from gateway.daemon.parts import Part
from gateway.daemon.verb_rights import cut_event
from gateway.daemon.webhooks import WebhookStatus, list_webhook_statuses, list_webhooks
from gateway.dispatcher.dispatcher import Dispatcher
from gateway.dispatcher.hook_requests import HookRequests
from gateway.hooks import HookRegistry
from gateway.records.activity import Activity
from gateway.sessions.repository import SessionRepository
from gateway.sessions.search import SessionSearch
from gateway.web.chat import ChatRoom
from gateway.web.event_stream import EventRoom, EventStream
from gateway.web.host_rules import build_host_rules
from gateway.web.key_check import KeyCheck
from gateway.web.live_stream import LiveStreams
from gateway.web.logins import Logins
from gateway.web.networks import NetworkReceiver
from gateway.web.openai.calls import ProgramCalls
from gateway.web.openai.server import ProgramServer
from gateway.web.page import PROTECTED, Page
from gateway.web.port import AnswerRequest, PortError, Router, WebPort, load_certificate
from gateway.web.probes import Probes, Reason
from gateway.web.program_keys import ProgramKeys
from gateway.web.turn_times import TurnTimes
from gateway.web.visitors import Visitors
from gateway.web.webhooks.intake import WebhookIntake
from gateway.web.webhooks.receiver import Webhook, WebhookReceiver
from gateway.yaml_source.tree import Finding


class WebSources(MetricSources, Protocol):
    """What the port tells of: all of the gateway that it sees."""

    configuration: Configuration
    home: Home
    keys: ProgramKeys
    logins: Logins
    activity: Activity
    nodes: Nodes
    parts: list[Part]
    sessions: SessionRepository
    dispatcher: Dispatcher
    agents: Agents
    registry: HookRegistry
    hook_requests: HookRequests
    search: SessionSearch
    adapter_context: AdapterContext

    @property
    def state(self) -> str: ...


class GatewayWeb:
    """The port, and what is counted for it; both while the part runs."""

    def __init__(self, gateway: WebSources, verbs: Mapping[str, Verb]) -> None:
        web, redactor = gateway.configuration.settings.web, gateway.configuration.redactor
        rules = build_host_rules(web)
        self._engine = gateway.engine
        self._times = TurnTimes(gateway.nodes.name)
        self._feed = EventStream(partial(tail_events, verbs), redactor.clean_all, cut_event)
        self._chat = ChatStream(gateway.engine, gateway.lanes, gateway.search)
        streams = LiveStreams(gateway.logins)
        chats = PageChat(gateway.adapter_context)
        chat = ChatRoom(chats, self._chat, streams, PROTECTED, redactor.clean)
        events = EventRoom(self._feed, streams, PROTECTED, verbs["events.tail"].role, gateway.activity, chats.find_role)
        rooms = {"chat": chat.answer, "live": events.answer}
        visitors = Visitors(rules, gateway.logins, chats.find_role, web.identity)
        page = Page(rules, gateway.logins, visitors, verbs, redactor.clean, gateway.activity, rooms)
        keys = KeyCheck(gateway.keys, rules)
        intake = WebhookIntake(gateway.engine, gateway.registry, gateway.lanes, gateway.hook_requests)
        self._receiver = WebhookReceiver(
            lambda: list_webhooks(gateway.configuration, gateway.folder_hooks), intake, rules
        )
        reasons = partial(list_reasons, gateway)
        metrics = partial(collect_metrics, gateway, self._times, self._receiver.counts)
        probes = Probes(rules.is_open, keys, reasons, metrics, redactor.clean)
        self._calls = ProgramCalls(
            gateway.engine, gateway.sessions, gateway.dispatcher.receive, gateway.lanes.interrupt
        )
        self._programs = ProgramServer(keys, gateway.keys, self._calls, lambda: gateway.agents.names)
        routes: dict[str, AnswerRequest] = dict.fromkeys(("health", "ready", "metrics"), probes.answer)
        routes["v1"] = self._programs.answer
        routes["webhooks"] = self._receiver.answer
        routes["networks"] = NetworkReceiver(gateway.adapter_context.routes, rules).answer
        is_named = "web.listen" in gateway.configuration.origins
        self.port = WebPort(web, Router(rules, routes, page.answer).answer, is_named=is_named)

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled. Raises PortError."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._times.run, self._engine)
            tasks.start_soon(self._feed.run)
            tasks.start_soon(self._calls.sweep)
            tasks.start_soon(self._chat.run)
            await self.port.serve(task_status=task_status)

    def describe(self) -> dict[str, str]:
        """For `status`."""
        return {"url": self.port.url, "trouble": self.port.trouble}

    def list_webhooks(self, webhooks: Mapping[str, Webhook], public_url: str) -> Iterator[WebhookStatus]:
        """For `status` too, by the address at which people reach it."""
        url = (public_url or self.port.local_url) if self.port.url else ""
        return list_webhook_statuses(webhooks, url, self._receiver.counts)

    def count_calls(self) -> dict[str, int]:
        """How many calls of programs are being answered now, by the name of their key."""
        return {key: count for key, count in self._programs.running.items() if count}


def find_bad_certificate(configuration: Configuration) -> Iterator[Finding]:
    """The files that the port proves itself with are looked at before a start fails for them."""
    web = configuration.settings.web
    try:
        load_certificate(web)
    except PortError as error:
        what, _, remedy = str(error).partition("\n")
        yield Finding(configuration.origins["web.tls.cert"], what, remedy, "warning")


async def tail_events(verbs: Mapping[str, Verb], notify: Notify) -> None:
    """As `events tail` does."""
    verb = verbs["events.tail"]
    await verb.answer(msgspec.convert({}, verb.params), notify)


async def list_reasons(gateway: WebSources) -> list[Reason]:
    """Why it is not ready: what was asked for and is not up. What somebody paused is not asked for now."""
    found = [] if gateway.state == "ready" else [Reason("gateway", gateway.state, "")]
    health = await gateway.engine.health()
    if not health.ok:
        found.append(Reason("journal", "down", health.detail))
    down = {one.name: one.presence.facts.detail for one in gateway.platforms if one.state == "down"}
    for part in gateway.parts:
        facts, is_down = part.facts, part.name in down
        if is_down or facts.state not in ("up", "standby", "paused"):
            detail = gateway.configuration.redactor.clean(down.get(part.name) or facts.detail)
            found.append(Reason(part.name, "down" if is_down else facts.state, detail))
    return found
