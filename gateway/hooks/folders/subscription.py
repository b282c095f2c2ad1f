"""What a folder subscribes to in the registry, and how that changes without an event being lost or told twice."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import msgspec

from gateway.errors import HookError
from gateway.events import Event, OnError
from gateway.hooks.folders.manifest import Guard, Manifest, ObserveMode
from gateway.hooks.registry import HookRegistry
from gateway.hooks.subscriptions import Subscription

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
        self._spec: SubscriptionSpec | None = None
        self._current = Subscription()
        self._lost = 0

    @property
    def queued(self) -> int:
        return sum(hook.queued for hook in self._current.hooks)

    @property
    def dropped(self) -> int:
        return self._lost + sum(hook.dropped for hook in self._current.hooks)

    def update(self, spec: SubscriptionSpec) -> None:
        """From the next event on this holds; what waits in the mailbox stays there."""
        if spec == self._spec:
            return
        parts = [
            self._intercept(msgspec.structs.replace(spec, intercepts=names, on_error=on_error), self._decide)
            for names, on_error in _split_by_failure(spec)
        ]
        if spec.observes:
            parts.append(
                self._registry.watch(
                    spec.observes, self._observe, when=spec.when, mode=spec.mode, max=spec.max, key=self._name
                )
            )
        before, self._current, self._spec = self._current, Subscription.join(parts), spec
        self._current.replace(before)
        self._count_lost(before)

    def guard(self, guard: Guard, reason: str) -> None:
        """The hook cannot answer, and what it guards is denied."""

        async def deny(event: Event) -> None:  # noqa: ARG001 - whatever it is
            raise HookError(f"{self._name} guards this and cannot answer: {reason}")

        spec = SubscriptionSpec(intercepts=guard.intercepts, when=guard.when, order=guard.order, on_error="deny")
        self._end_with(self._intercept(spec, deny))

    def end(self) -> None:
        """Nothing is told any more; what waits is lost, and counted."""
        self._end_with(Subscription())

    def _end_with(self, subscription: Subscription) -> None:
        before, self._current, self._spec = self._current, subscription, None
        before.remove()
        self._count_lost(before)

    def _intercept(self, spec: SubscriptionSpec, decide: DecideCall) -> Subscription:
        return self._registry.on(
            spec.intercepts, decide, order=spec.order, when=spec.when, on_error=spec.on_error, key=self._name
        )

    def _count_lost(self, before: Subscription) -> None:
        self._lost += sum(hook.dropped for hook in before.hooks)


def _split_by_failure(spec: SubscriptionSpec) -> Iterator[tuple[tuple[str, ...], OnError]]:
    """What it intercepts, apart by what its failure means."""
    if others := tuple(name for name in spec.intercepts if name not in spec.guards):
        yield others, spec.on_error
    if guarded := tuple(name for name in spec.intercepts if name in spec.guards):
        yield guarded, "deny"
