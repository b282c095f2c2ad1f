"""A plugin, from its folder to its functions: its callbacks by hook name, its tools, and its commands.

It is the package `hermes_plugins.<slug>`, in `sys.modules` before it runs, compiled from the text in the folder as any
hook is. Each hook name that it registered is one target of the wire, so that its callbacks are judged together.
"""

import asyncio
import importlib
import inspect
import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from copy import deepcopy
from functools import cached_property, lru_cache, partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

from gateway.events import Event, HookMark
from gateway.hermes.modules import PLUGIN_PARENT, add_hollow_modules
from gateway.hermes.plugin.arguments import build_ids, remember_event
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, REGISTERS_NOTHING, TELEMETRY_SCHEMA, HermesHook
from gateway.hermes.plugin.message_shape import build_message_event
from gateway.hermes.plugin.open_calls import MIDDLEWARE, TOOL_EXECUTION, TOOL_REQUEST, OpenCalls
from gateway.hermes.plugin.plugin_context import PluginContext, Registrations
from gateway.hermes.plugin.results import apply_args
from gateway.hermes.shim.approval import CURRENT_CALL
from gateway.hermes.shim.gateway_runner import GatewayRunner
from gateway.hermes.shim.session_env import enter_session
from gateway.worker.capabilities import GatewayRequests
from gateway.worker.loader import Handlers, SourceOnlyLoader, cache_source_lines, read_siblings_from_source
from gateway.worker.protocol import PluginContents, PluginItem, WorkerSpec

MOST_CALLBACKS = 256  # whose parameters are remembered
DISPATCH, GUARD = "pre_gateway_dispatch", "pre_tool_call"


Answer = TypeVar("Answer")


def keep_result(read: Callable[[Callable[..., Any]], Answer]) -> Callable[[Callable[..., Any]], Answer]:
    """Inspect a callback once, not at each call; one without a hash is inspected each time."""
    known = lru_cache(MOST_CALLBACKS)(read)

    def look(function: Callable[..., Any]) -> Answer:
        return known(function) if isinstance(function, Hashable) else read(function)

    return look


@keep_result
def is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def pick_arguments(
    function: Callable[..., Any],
    kwargs: Mapping[str, Any],
    is_loose: bool = False,
    named_only: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Pick the arguments that the function declares, or all of `kwargs` if it takes `**kwargs`.

    The called function itself counts, as in Hermes: a decorator that takes everything gets everything, whatever
    `functools.wraps` says. `is_loose`: arguments that it needs and we lack are None.
    """
    parameters = _list_parameters(function)
    if parameters is None:
        return dict(kwargs)
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    lacking = {one.name: None for one in named if one.default is one.empty and one.name not in kwargs}
    further = {one.name: named_only[one.name] for one in named if one.name in named_only} if named_only else {}
    given = {**kwargs, **further, **(lacking if is_loose else {})}
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return given
    return {one.name: given[one.name] for one in named if one.name in given}


@keep_result
def _list_parameters(function: Callable[..., Any]) -> Collection[inspect.Parameter] | None:
    """Return the function's parameters, or None for some made in C, which do not declare them."""
    try:
        return tuple(inspect.signature(_undecorated(function)).parameters.values())
    except (TypeError, ValueError):
        return None


def _undecorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function without the signature of a function that it wraps; only for reading its parameters."""
    if isinstance(function, partial):
        return partial(_undecorated(function.func), *function.args, **function.keywords)
    if isinstance(function, MethodType):
        return MethodType(_undecorated(function.__func__), function.__self__)
    if isinstance(function, FunctionType):
        bare = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        bare.__kwdefaults__ = function.__kwdefaults__
        return bare
    if not isinstance(function, type) and isinstance(call := type(function).__call__, FunctionType):
        return MethodType(_undecorated(call), function)
    return function


__all__ = ["enter_session", "load", "show_fields"]
show_fields = None  # callbacks get fields of their own
THREADS = 32
QUICK = 0.002  # seconds for which the loop itself waits for a callback, which most do not take
MOST_SESSIONS = 1_000  # sessions whose context variables are kept
NOTE_TARGET = "(what earlier events say)"  # a target of ours, beside the hook names
NOTE_ORDER = -100
APPROVALS_KEY = "approved"  # the key of the plugin's store

ReportError = Callable[[BaseException], object]


def load(spec: WorkerSpec, requests: GatewayRequests, report: ReportError, remark: Callable[[str], object]) -> Handlers:
    """Import the plugin, and let it register. `remark` gets its uses without effect while it runs.

    Raises any error of the plugin's code, and TypeError if it has no `register`.
    """
    file, manifest = Path(spec.handler), spec.facts
    add_hollow_modules(manifest.get("patches", ()))
    value = str(manifest.get("entry_point", ""))
    module = _load_entry_point(value) if value else _run_module(file, str(manifest["key"]))
    register = getattr(module, "register", module)
    if not callable(register):
        raise TypeError("nothing to call: define register(ctx)")
    ctx = PluginContext(manifest, spec.options, requests)
    try:
        is_coroutine = hasattr(register(ctx), "__await__")
    except Exception as error:  # its registrations before the error are in force, as in Hermes
        if not _has_guards(ctx):
            raise
        remark(f"register() raised {type(error).__name__}: {error}; what it registered before that is in force")
        is_coroutine = False
    if is_coroutine:
        raise TypeError(
            "register(ctx) is a coroutine function; Hermes calls it without awaiting it, so make it a `def`"
        )
    ctx.is_registered = True
    is_busy = threading.active_count() > 1 or asyncio.all_tasks(asyncio.get_running_loop())
    if ctx.registered.is_nothing and not is_busy and not manifest.get("callbacks"):
        ctx.registered.remarks.append(REGISTERS_NOTHING)
    return Plugin(ctx, report, remark).handlers()


def _has_guards(ctx: PluginContext) -> bool:
    """Tell if the plugin registered something, and at least all the guards that its source shows."""
    registered = {event for name in ctx.registered.hooks if name in HERMES_HOOKS for event in HERMES_HOOKS[name].events}
    return not ctx.registered.is_nothing and {*ctx.manifest.guards} <= registered


def _load_entry_point(value: str) -> Any:
    """Load `module`, or `module:name`: a plugin that is a package, imported as one."""
    module, _, name = value.partition(":")
    found: Any = importlib.import_module(module)
    for word in name.split(".") if name else ():
        found = getattr(found, word)
    return found


def _run_module(file: Path, key: str) -> ModuleType:
    parent = sys.modules.setdefault(PLUGIN_PARENT, ModuleType(PLUGIN_PARENT))
    parent.__path__ = []
    name = f"{PLUGIN_PARENT}.{key.replace('/', '__').replace('-', '_')}"
    loader = SourceOnlyLoader(name, str(file))
    spec = spec_from_file_location(name, file, loader=loader, submodule_search_locations=[str(file.parent)])
    assert spec
    module = sys.modules[name] = module_from_spec(spec)
    read_siblings_from_source(file.parent)
    cache_source_lines(str(file), file.read_bytes())
    loader.exec_module(module)
    return module


class SessionContexts:
    """The context variables that a plugin's callbacks have set, by conversation.

    In Hermes the callbacks of a conversation run one after the other in one thread: each can read the variables that an
    earlier one has set. Here each call has a context of its own, so the variables are carried over.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, dict[ContextVar[Any], Any]] = OrderedDict()

    @contextmanager
    def use(self, session: str) -> Iterator[None]:
        """Restore the conversation's variables inside, and keep the changes at the end."""
        before = copy_context()
        for variable, value in self._kept.get(session, {}).items():
            variable.set(value)
        try:
            yield
        finally:
            now = copy_context()
            changed = {one: value for one, value in now.items() if one not in before or before[one] is not value}
            self._keep(session, changed)

    def run(self, session: str, function: Callable[[], Any]) -> Any:
        """Call the function in a context of its own; from any thread."""
        return copy_context().run(self._run, session, function)

    def _run(self, session: str, function: Callable[[], Any]) -> Any:
        with self.use(session):
            return function()

    def _keep(self, session: str, changed: dict[ContextVar[Any], Any]) -> None:
        if not changed:
            self._kept.pop(session, None)
            return
        self._kept[session] = changed
        self._kept.move_to_end(session)
        while len(self._kept) > MOST_SESSIONS:
            self._kept.popitem(last=False)


class Plugin:
    """The registrations of a plugin, as functions that the worker calls."""

    def __init__(self, ctx: PluginContext, report: ReportError, remark: Callable[[str], object]) -> None:
        self._ctx = ctx
        self._report = report
        self._remark = remark
        self._threads = ThreadPoolExecutor(THREADS, "plugin")
        self._contexts = SessionContexts()
        self._approvals: set[str] = set()  # the permanent approvals of people
        self._guarded = frozenset(ctx.manifest.guards)
        for name in getattr(ctx.manifest, "callbacks", ()):  # reserved for late callbacks
            ctx.registered.hooks.setdefault(name, [])
        self._served = frozenset(ctx.registered.hooks)
        self._loop = asyncio.get_running_loop()
        ctx.on_hook = self._check_late_hook
        ctx.on_late = self._remark_late
        for text in ctx.registered.asleep:
            remark(text)
        if GUARD in self._served:
            self._approvals.update(ctx.state.get(APPROVALS_KEY) or ())

    @cached_property
    def _inside(self) -> dict[str, Any]:
        """Return the replacements for objects of Hermes's process."""
        runner = GatewayRunner()
        return {"gateway": runner, "session_store": runner.session_store}

    def handlers(self) -> Handlers:
        registered = self._ctx.registered
        rows = [HERMES_HOOKS[name] for name in registered.hooks if name in HERMES_HOOKS]
        marked = {row.name: (self._callbacks(row, registered.hooks[row.name]), self._make_mark(row)) for row in rows}
        if notes := tuple(dict.fromkeys(name for row in rows for name in row.notes)):
            marked[NOTE_TARGET] = (remember_event, HookMark(notes, NOTE_ORDER))
        for name, callbacks in registered.subscribed.items():
            marked[f"event {name}"] = (self._subscribers(callbacks), HookMark((name,)))
        marked |= self._list_middleware()
        served = {f"tool:{name}": self._tool(handler) for name, (handler, _) in registered.tools.items()}
        served |= {f"command:{name}": self._command(handler) for name, (handler, _) in registered.commands.items()}
        return Handlers(None, marked, served, _describe_contents(registered, rows, marked))

    def _list_middleware(self) -> dict[str, tuple[Callable[[Event], Any], HookMark]]:
        registered = self._ctx.registered.middleware
        marked: dict[str, tuple[Callable[[Event], Any], HookMark]] = {}
        if asked := registered.get(TOOL_REQUEST.name):
            marked[TOOL_REQUEST.name] = (self._callbacks(TOOL_REQUEST, asked), self._make_mark(TOOL_REQUEST))

        def report(failures: Sequence[Exception]) -> None:
            self._loop.call_soon_threadsafe(self._report_failures, failures)

        if around := registered.get(TOOL_EXECUTION.name):
            wrapped = OpenCalls(around, self._start_thread, report)
            marked |= wrapped.marks(self._make_mark(TOOL_EXECUTION).on_error)
        return marked

    def _start_thread(self, event: Event, function: Callable[[], Any]) -> "Future[Any]":
        """Start the function in a thread of its own, since it may wait for long; return a future of its result."""
        session, answer = str(event.get("session_key") or ""), Future[Any]()
        self._ctx.session_key.set(session)

        def run() -> None:
            try:
                answer.set_result(self._contexts.run(session, function))
            except BaseException as error:  # noqa: BLE001 - the waiting caller gets it
                answer.set_exception(error)

        threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
        return answer

    def _callbacks(self, row: HermesHook, callbacks: Sequence[Callable[..., Any]]) -> Callable[[Event], Awaitable[Any]]:
        """Return a function that calls all callbacks of one name, even after a failure.

        A guard's first failure is the answer.
        """

        async def call(event: Event) -> Any:
            arguments = row.build_arguments(event) if callbacks else None
            if arguments is None:
                return None
            told = arguments.get("args")
            if row.name in (GUARD, TOOL_REQUEST.name):  # a copy, in which a change is seen
                arguments["args"] = deepcopy(told)
            answers, failures = await self._ask_each(event, row, callbacks, arguments)
            # A failure is the call's own, unless others have answered and their answers must not be lost with it, or
            # another name guards this event, and this one does not.
            guards = event.name in self._guarded
            is_own = bool(failures) and (row.guards if guards else not answers)
            self._report_failures([] if is_own else failures)
            if is_own:
                raise failures[0]
            if row.apply_results is None:
                return None
            if row.name in (GUARD, TOOL_REQUEST.name) and arguments["args"] != told:
                apply_args(event, arguments["args"])
            known = len(self._approvals)
            result = row.apply_results(event, answers, self._approvals)
            if len(self._approvals) > known:
                await self._call(event, self._ctx.state.set, APPROVALS_KEY, sorted(self._approvals))
            return result

        return call

    async def _ask_each(
        self, event: Event, row: HermesHook, callbacks: Sequence[Callable[..., Any]], arguments: dict[str, Any]
    ) -> tuple[list[Any], list[Exception]]:
        """Call each callback. Return the answers, and the errors of the callbacks that failed."""
        arguments["telemetry_schema_version"] = TELEMETRY_SCHEMA
        if row.name == DISPATCH:  # here it has objects of Hermes
            arguments |= {"event": build_message_event(event), **self._inside}
        further = row.build_named(event) if row.build_named else None
        answers, failures = [], []
        for callback in callbacks:
            given = pick_arguments(callback, arguments, row.is_loose, further)
            try:
                # Hermes calls this one on its loop, where callbacks make tasks of what they send.
                run = self._call_here if row.name == DISPATCH else self._call
                answer = await run(event, callback, **given)
            except Exception as error:  # noqa: BLE001 - calling a plugin
                failures.append(error)
            else:
                answers += [] if answer is None else [answer]
        return answers, failures

    def _subscribers(self, callbacks: Sequence[Callable[..., Any]]) -> Callable[[Event], Awaitable[Any]]:
        async def call(event: Event) -> None:
            failures = []
            for callback in callbacks:
                try:
                    await self._call(event, callback, **deepcopy(event.get("payload") or {}))
                except Exception as error:  # noqa: BLE001 - calling a plugin
                    failures.append(error)
            self._report_failures(failures[1:])
            if failures:
                raise failures[0]

        return call

    def _make_mark(self, row: HermesHook) -> HookMark:
        guards = row.guards and not self._guarded.isdisjoint(row.events)
        return HookMark(row.events, row.order, on_error="deny" if guards else "skip")

    def _check_late_hook(self, name: str) -> None:
        """Warn of a hook registered too late: the gateway only calls the names that it knew at the start."""
        if name in HERMES_HOOKS and name not in self._served:
            self._remark_late(f"the hook {name}")

    def _remark_late(self, what: str) -> None:
        text = f"{what} is registered too late and is not called: do that in register(ctx)"
        self._loop.call_soon_threadsafe(self._report_failures, [RuntimeError(text)])
        self._loop.call_soon_threadsafe(self._remark, text)

    def _report_failures(self, failures: Sequence[Exception]) -> None:
        for error in failures:
            traceback.print_exception(error)
            self._report(error)

    async def _call_here(self, event: Event, function: Callable[..., Any], /, **kwargs: Any) -> Any:
        """Call the function as `_call` does, on the loop itself."""
        session = str(event.get("session_key") or "")
        CURRENT_CALL.set(event)
        self._ctx.session_key.set(session)
        with self._contexts.use(session):
            result = function(**kwargs)
            return await result if inspect.isawaitable(result) else result

    async def _call(self, event: Event, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call the function and await its result if needed; meanwhile `ctx` belongs to the event's conversation."""
        session = str(event.get("session_key") or "")
        CURRENT_CALL.set(event)
        self._ctx.session_key.set(session)
        if is_async(function):
            with self._contexts.use(session):
                return await function(*args, **kwargs)
        result = await self._run_in_thread(partial(self._contexts.run, session, partial(function, *args, **kwargs)))
        return await result if inspect.isawaitable(result) else result

    async def _run_in_thread(self, function: Callable[[], Any]) -> Any:
        """Return the function's result. A quick one costs no round of the loop; a cancelled one runs to its end."""
        done, running = asyncio.Event(), self._threads.submit(function)
        try:
            return running.result(QUICK)
        except TimeoutError:  # its own, or it takes longer
            if running.done():
                return running.result()
        running.add_done_callback(lambda _: self._loop.call_soon_threadsafe(done.set))
        try:
            await done.wait()
        except asyncio.CancelledError:
            await done.wait()
            raise
        return running.result()

    def _tool(self, handler: Callable[..., Any]) -> Callable[[Event], Awaitable[Any]]:
        async def call(event: Event) -> Any:
            about = {**build_ids(event), "user_task": None}  # Hermes has none either
            given = await self._call(event, handler, event["args"], **pick_arguments(handler, about))
            return _text_of_parts(given)

        return call

    def _command(self, handler: Callable[..., Any]) -> Callable[[Event], Awaitable[Any]]:
        async def call(event: Event) -> Any:
            answer = await self._call(event, handler, event["args"])
            return None if answer is None else str(answer)

        return call


def _text_of_parts(given: Any) -> Any:
    """Return a tool's result; if it has parts, return their texts, since our models get no images from tools."""
    if not (isinstance(given, dict) and given.get("_multimodal") is True and isinstance(given.get("content"), list)):
        return given
    parts = [part for part in given["content"] if isinstance(part, dict)]
    texts = [str(part.get("text") or "") if part.get("type") == "text" else f"[{part.get('type')}]" for part in parts]
    return "\n".join(texts)


def _describe_contents(registered: Registrations, rows: Sequence[HermesHook], marked: Iterable[str]) -> PluginContents:
    """Describe to the gateway all that the plugin has in addition to the marks."""
    return PluginContents(
        decides=(
            *(row.name for row in rows if row.decides),
            *(name for name in marked if name.partition(" ")[0] in MIDDLEWARE),
            NOTE_TARGET,
        ),
        tools=tuple(PluginItem(name, **facts) for name, (_, facts) in registered.tools.items()),
        commands=tuple(PluginItem(name, **facts) for name, (_, facts) in registered.commands.items()),
        skills=tuple(PluginItem(name, **facts) for name, facts in registered.skills.items()),
        remarks=tuple(dict.fromkeys(registered.remarks)),
    )
