"""From a plugin's folder to what can be called of it: its callbacks by hook name, its tools, its commands.

It is the package `hermes_plugins.<slug>`, in `sys.modules` before it runs, compiled from the text in the folder as any
hook is. Each hook name that it registered is one target of the wire, so that what belongs together is judged together.
"""

import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from gateway.events.event import Event, HookMark
from gateway.hooks.wires.process.capabilities import Requests
from gateway.hooks.wires.process.loader import Handlers, SourceOnly, read_siblings_from_source, remember_text
from gateway.hooks.wires.process.plugin.calling import Caller, fitting
from gateway.hooks.wires.process.plugin.ctx import PluginContext, Registered
from gateway.hooks.wires.process.plugin.names import SCHEMA, TABLE, Row
from gateway.hooks.wires.process.plugin.shapes import shaped
from gateway.hooks.wires.process.plugin.told import remember

PARENT = "hermes_plugins"
NOTE = "(what earlier events say)"  # a target of ours, beside the hook names
FIRST = -100
APPROVED = "approved"  # the key of the plugin's store

Complain = Callable[[BaseException], object]


class Approvals(set[str]):
    """What people have approved for good; `is_changed` once something came to it."""

    is_changed = False

    def add(self, rule: str) -> None:
        self.is_changed = True
        super().add(rule)


def load_plugin(
    file: Path, manifest: Mapping[str, Any], options: Mapping[str, Any], requests: Requests, complain: Complain
) -> Handlers:
    """Raises whatever the plugin's code raises, and TypeError when it has no `register`."""
    module = _run(file, str(manifest["key"]))
    register = getattr(module, "register", None)
    if not callable(register):
        raise TypeError("nothing to call: define register(ctx)")
    ctx = PluginContext(manifest, options, requests)
    if hasattr(register(ctx), "__await__"):
        raise TypeError(
            "register(ctx) is a coroutine function; Hermes calls it without awaiting it, so make it a `def`"
        )
    return Plugin(ctx, requests, complain).handlers()


def _run(file: Path, key: str) -> ModuleType:
    parent = sys.modules.setdefault(PARENT, ModuleType(PARENT))
    parent.__path__ = []
    name = f"{PARENT}.{key.replace('/', '__').replace('-', '_')}"
    module = ModuleType(name)
    loader = SourceOnly(name, str(file))
    spec = ModuleSpec(name, loader, origin=str(file), is_package=True)
    spec.submodule_search_locations = [str(file.parent)]
    module.__file__, module.__loader__, module.__spec__ = str(file), loader, spec
    module.__package__, module.__path__ = name, [str(file.parent)]
    sys.modules[name] = module
    read_siblings_from_source(file.parent)
    source = file.read_bytes()
    code = compile(source, str(file), "exec", dont_inherit=True)
    remember_text(str(file), source)
    exec(code, module.__dict__)  # noqa: S102 - running the plugin is what this process is for
    return module


class Plugin:
    """What a plugin has registered, as functions that the worker calls."""

    def __init__(self, ctx: PluginContext, requests: Requests, complain: Complain) -> None:
        self._ctx = ctx
        self._requests = requests
        self._complain = complain
        self._caller = Caller()
        self._approvals = Approvals()
        self._is_guard = bool(ctx.manifest.guards)
        if "pre_tool_call" in ctx.registered.hooks:
            self._approvals.update(ctx.state.get(APPROVED) or ())

    def handlers(self) -> Handlers:
        had = self._ctx.registered
        rows = [TABLE[name] for name in had.hooks if name in TABLE]
        marked = {row.name: (self._callbacks(row, had.hooks[row.name]), _mark(row, self._is_guard)) for row in rows}
        if notes := tuple(dict.fromkeys(name for row in rows for name in row.notes)):
            marked[NOTE] = (_remember, HookMark(notes, FIRST))
        served = {f"tool:{name}": self._tool(handler) for name, (handler, _) in had.tools.items()}
        served |= {f"command:{name}": self._command(handler) for name, (handler, _) in had.commands.items()}
        return Handlers(None, marked, served, _offers(had, rows))

    def _callbacks(self, row: Row, callbacks: Sequence[Callable[..., Any]]) -> Callable[[Event], Awaitable[Any]]:
        """All of one name: each is called whatever became of the one before; a guard's first failure is the answer."""

        async def call(event: Event) -> Any:
            told = row.told(event)
            if told is None:
                return None
            told = {**shaped(row.name, told, event), "telemetry_schema_version": SCHEMA}
            self._ctx.session_key.set(str(event.get("session_key") or ""))
            answers, failures = [], []
            for callback in callbacks:
                try:
                    answer = await self._caller.call(callback, **fitting(callback, told, row.is_loose))
                except Exception as error:  # noqa: BLE001 - calling a plugin
                    failures.append(error)
                else:
                    answers += [] if answer is None else [answer]
            self._tell_failures(row, failures, bool(answers))
            if row.meant is None:
                return None
            result = row.meant(event, answers, self._approvals)
            await self._keep_approvals()
            return result

        return call

    def _tell_failures(self, row: Row, failures: Sequence[Exception], is_answered: bool) -> None:
        """A failure is the call's own, unless others have answered and their word must not be lost with it."""
        if failures and ((row.guards and self._is_guard) or not is_answered):
            raise failures[0]
        for error in failures:
            traceback.print_exception(error)
            self._complain(error)

    async def _keep_approvals(self) -> None:
        if self._approvals.is_changed:
            self._approvals.is_changed = False
            await self._caller.call(self._ctx.state.set, APPROVED, sorted(self._approvals))

    def _tool(self, handler: Callable[..., Any]) -> Callable[[Event], Awaitable[Any]]:
        async def call(event: Event) -> Any:
            session = event.get("session_id") or ""
            known = {"task_id": session, "session_id": session, "turn_id": event.get("turn_id") or ""}
            self._ctx.session_key.set(str(event.get("session_key") or ""))
            return await self._caller.call(handler, event["args"], **fitting(handler, known))

        return call

    def _command(self, handler: Callable[..., Any]) -> Callable[[Event], Awaitable[Any]]:
        async def call(event: Event) -> Any:
            self._ctx.session_key.set(str(event.get("session_key") or ""))
            said = await self._caller.call(handler, event["args"])
            return None if said is None else str(said)

        return call


def _mark(row: Row, is_guard: bool) -> HookMark:
    return HookMark(row.events, row.order, on_error="deny" if is_guard and row.guards else "skip")


async def _remember(event: Event) -> None:
    remember(event)


def _offers(had: Registered, rows: Sequence[Row]) -> dict[str, Any]:
    """What the gateway is told beside the marks."""
    return {
        "decides": [*(row.name for row in rows if row.decides), NOTE],
        "tools": [{"name": name, **facts} for name, (_, facts) in had.tools.items()],
        "commands": [{"name": name, **facts} for name, (_, facts) in had.commands.items()],
        "skills": [{"name": name, **facts} for name, facts in had.skills.items()],
        "remarks": list(had.remarks),
    }
