"""What a folder subscribes to in the registry, and how that changes without an event being lost or told twice."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from gateway.errors import HookError
from gateway.events import Event, OnError
from gateway.hooks.folders.manifest import Guard, Manifest, ObserveMode
from gateway.hooks.hook import Hook
from gateway.hooks.patterns import Patterns
from gateway.hooks.registry import HookRegistry

DecideCall = Callable[[Event], Awaitable[Any]]
ObserveCall = Callable[[str, Event], Awaitable[None]]


class SubscriptionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is subscribed to, and how."""

    intercepts: tuple[str, ...] = ()
    observes: tuple[str, ...] = ()
    when: Mapping[str, Any] = {}
    order: float = 0
    on_error: OnError = "skip"
    guards: tuple[str, ...] = ()  # of `intercepts`: these deny, whatever `on_error` says
    mode: ObserveMode = "queued"
    max: int = 1


def subscription_spec_of(manifest: Manifest, is_durable: bool) -> SubscriptionSpec:
    """What a durable hook observes comes to it from the journal."""
    observes = () if is_durable else manifest.events
    return SubscriptionSpec(
        intercepts=manifest.intercepts,
        observes=tuple(name for name in observes if name not in manifest.intercepts),
        when=manifest.when,
        order=manifest.order,
        on_error=manifest.on_error,
        guards=manifest.guards,
        mode=manifest.mode,
        max=manifest.max,
    )


class FolderSubscription:
    """The hooks of one folder in the registry, all under its name."""

    def __init__(self, registry: HookRegistry, name: str, decide: DecideCall, observe: ObserveCall) -> None:
        self._registry = registry
        self._name = name
        self._decide = decide
        self._observe = observe
        self._terms: SubscriptionSpec | None = None
        self._hooks: list[Hook] = []
        self._leave: list[Callable[[], None]] = []
        self._lost = 0

    @property
    def queued(self) -> int:
        return sum(hook.queued for hook in self._hooks)

    @property
    def dropped(self) -> int:
        return self._lost + sum(hook.health.dropped for hook in self._hooks)

    def update(self, terms: SubscriptionSpec) -> None:
        """From the next event on these terms hold; what waits in the mailbox stays there."""
        if terms == self._terms:
            return
        before, leave = self._hooks, self._leave
        self._hooks, self._leave, self._terms = [], [], terms
        for names, on_error in _split_by_failure(terms):
            self._intercept(msgspec.structs.replace(terms, intercepts=names, on_error=on_error), self._decide)
        if terms.observes:
            self._join(
                lambda: self._registry.watch(
                    terms.observes,
                    self._observe,
                    when=terms.when,
                    mode=terms.mode,
                    max=terms.max,
                    key=self._name,
                )
            )
        if before:
            move_queued_events(before, self._hooks)
            self._keep_place(before)
            self._part(before, leave)

    def guard(self, guard: Guard, reason: str) -> None:
        """The hook cannot answer, and what it guards is denied."""

        async def deny(event: Event) -> None:  # noqa: ARG001 - whatever it is
            raise HookError(f"{self._name} guards this and cannot answer: {reason}")

        before, leave = self._hooks, self._leave
        self._hooks, self._leave, self._terms = [], [], None
        terms = SubscriptionSpec(intercepts=guard.intercepts, when=guard.when, order=guard.order, on_error="deny")
        self._intercept(terms, deny)
        self._part(before, leave)

    def end(self) -> None:
        """Nothing is told any more; what waits is lost, and counted."""
        before, leave = self._hooks, self._leave
        self._hooks, self._leave, self._terms = [], [], None
        self._part(before, leave)

    def _intercept(self, terms: SubscriptionSpec, decide: DecideCall) -> None:
        self._join(
            lambda: self._registry.on(
                terms.intercepts,
                decide,
                order=terms.order,
                when=terms.when,
                on_error=terms.on_error,
                key=self._name,
            )
        )

    def _join(self, register: Callable[[], Callable[[], None]]) -> None:
        with self._registry.plans.lock:
            self._leave.append(register())
            self._hooks.append(self._registry.plans.newest)

    def _keep_place(self, before: list[Hook]) -> None:
        """Among hooks of the same order who was there first comes first; a change of its terms does not undo that."""
        for hook in self._hooks:
            hook.number = next((old.number for old in before if old.intercepts == hook.intercepts), hook.number)
        self._registry.plans.forget()

    def _part(self, hooks: list[Hook], leave: list[Callable[[], None]]) -> None:
        self._lost += sum(hook.health.dropped + hook.queued for hook in hooks)
        for remove in leave:
            remove()


def _split_by_failure(terms: SubscriptionSpec) -> Iterator[tuple[tuple[str, ...], OnError]]:
    """What it intercepts, apart by what its failure means."""
    if others := tuple(name for name in terms.intercepts if name not in terms.guards):
        yield others, terms.on_error
    if guarded := tuple(name for name in terms.intercepts if name in terms.guards):
        yield guarded, "deny"


def move_queued_events(before: list[Hook], after: list[Hook]) -> None:
    """The letters that wait go to the new mailbox, in their order; what is being delivered stays where it is."""
    new = next((hook.mailbox for hook in after if hook.mailbox), None)
    for hook in before:
        if hook.mailbox and new:
            waiting = len(hook.mailbox.queue)
            new.queue.extend(hook.mailbox.queue)
            hook.mailbox.queue.clear()
            for _ in range(waiting):
                new.wake()


def patterns_of(names: Iterable[str]) -> Patterns[str]:
    patterns: Patterns[str] = Patterns()
    for name in names:
        patterns.add(name, name)
    return patterns
