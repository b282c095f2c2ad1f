"""The argument of a plugin's `register(ctx)`: the plugin registers its parts with it, and uses the gateway by it.

`Registrations` holds the registered parts, and the gateway gets them once `register` is done. A part that is not
offered here is noted and returns None, so that the rest of the plugin works.
"""

import asyncio
import atexit
import inspect
import json
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from gateway.hermes.plugin.hook_table import HERMES_HOOKS, NO_NETWORK, describe_unsupported
from gateway.hermes.plugin.llm import PluginLlm
from gateway.hermes.plugin.open_calls import MIDDLEWARE
from gateway.hermes.shim.session_env import get_session_env
from gateway.hermes.shim.tool_names import HERMES_TOOLS, OUR_TOOLS_ALONE
from gateway.worker.capabilities import GatewayRequests

_ABSENT = object()
OVERRIDE_OPTION = (
    "allow_tool_override"  # in `plugins.entries.<name>` of Hermes's configuration, or in the hook's options
)
# The hooks that can replace middleware which is not called here.
MIDDLEWARE_HOOKS = {
    **dict.fromkeys(("llm_request", "api_request"), "pre_llm_call and pre_api_request"),
    **dict.fromkeys(("llm_execution", "api_execution"), "transform_llm_output and post_api_request"),
}
STATE_PREFIX, CONFIG_PREFIX = "state/", "config/"  # begin the keys of the plugin's store


class Registrations(msgspec.Struct):
    """The registered parts of a plugin."""

    hooks: dict[str, list[Callable[..., Any]]] = msgspec.field(default_factory=dict)
    tools: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = msgspec.field(default_factory=dict)
    commands: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = msgspec.field(default_factory=dict)
    skills: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    subscribed: dict[str, list[Callable[..., Any]]] = msgspec.field(
        default_factory=dict
    )  # by the name of another's event
    remarks: list[str] = msgspec.field(default_factory=list)
    middleware: dict[str, list[Callable[..., Any]]] = msgspec.field(default_factory=dict)  # by its kind
    asleep: list[str] = msgspec.field(default_factory=list)  # on parts that would stop or change something in Hermes

    @property
    def is_nothing(self) -> bool:
        acts = (self.hooks, self.middleware, self.tools, self.commands, self.skills, self.subscribed)
        return not any(acts) and not self.remarks


class PluginState:
    """A plugin's own lasting values by key; any value that JSON can hold."""

    def __init__(self, requests: GatewayRequests, prefix: str) -> None:
        self._ask = requests.ask
        self._prefix = prefix

    def get(self, key: str, default: Any = None) -> Any:
        return self._ask("store.get", {"key": self._prefix + key, "default": default})

    def set(self, key: str, value: Any) -> None:
        self._ask("store.set", {"key": self._prefix + key, "value": value})

    def delete(self, key: str) -> bool:
        return bool(self._ask("store.delete", {"key": self._prefix + key}))

    def keys(self) -> list[str]:
        found = self._ask("store.keys", {})
        return [key.removeprefix(self._prefix) for key in found if key.startswith(self._prefix)]

    def __getitem__(self, key: str) -> Any:
        if key not in self.keys():
            raise KeyError(key)
        return self.get(key)

    def __setitem__(self, key: str, value: Any) -> None:
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return key in self.keys()


class MissingPart:
    """A replacement for a missing part of `ctx`: while the plugin registers, calls of it and of its parts do nothing.

    Later they raise an error: a guard must not take None for an answer. Private parts of Hermes never exist here.
    """

    def __init__(self, called: str, is_over: Callable[[], bool]) -> None:
        self._called = called
        self._is_over = is_over

    def __call__(self, *_args: Any, **_more: Any) -> None:
        if self._is_over():
            raise RuntimeError(f"{self._called} is not offered here: it is a part of Hermes's own process")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith("_") or "._" in self._called:
            raise AttributeError(f"{self._called} has no {name!r} here: it is a part of Hermes's own process")
        return MissingPart(f"{self._called}.{name}", self._is_over)


def _make_refusal(why: str) -> Callable[..., str]:
    def refuse(args: Mapping[str, Any], **_: Any) -> str:  # noqa: ARG001 - whatever they are
        return json.dumps({"error": why})

    return refuse


def _add_middleware(ctx: "PluginContext", kind: str, callback: Callable[..., Any]) -> None:
    if not callable(callback):
        raise TypeError(f"the middleware {kind} is {type(callback).__name__}, which cannot be called")
    if kind in MIDDLEWARE and ctx.is_registered:
        ctx.on_late(f"the middleware {kind}")
    elif kind in MIDDLEWARE:
        ctx.registered.middleware.setdefault(kind, []).append(callback)
    elif kind not in MIDDLEWARE_HOOKS:  # Hermes has none of it either
        ctx.registered.remarks.append("ctx.register_middleware is not offered here")
    else:
        what = f"the middleware {kind} is never asked here: what it stops or changes under Hermes goes through"
        text = f"{what}; asked are the hooks {MIDDLEWARE_HOOKS[kind]}"
        ctx.registered.remarks.append(text)
        ctx.registered.asleep.append(text)


def _find_failed_check(check: Callable[[], Any] | None) -> str:
    """Say why a tool cannot work, by its own check; an error in the check means no, as in Hermes."""
    try:
        return "" if check is None or check() else "its own check says that it cannot work"
    except Exception as error:  # noqa: BLE001 - it is the plugin's own
        return f"its own check fails: {type(error).__name__}: {error}"


class PluginContext:
    """The object `ctx`.

    Its calls return when the gateway has answered, in a coroutine too, as in Hermes.
    """

    def __init__(self, manifest: Mapping[str, Any], options: Mapping[str, Any], requests: GatewayRequests) -> None:
        self.manifest = SimpleNamespace(**manifest)
        self.plugin_id: str = manifest["key"]
        self.profile_name = "default"
        self.state = PluginState(requests, STATE_PREFIX)
        self.llm = PluginLlm(lambda params: requests.ask("llm", params))
        self.registered = Registrations()
        self.on_hook: Callable[[str], object] = lambda _: None  # gets the hooks that are registered later
        self.on_late: Callable[[str], object] = lambda _: None  # gets other late registrations, in words
        self.is_registered = False  # `register` has returned
        self.session_key: ContextVar[str] = ContextVar("session_key", default="")
        self._config = PluginState(requests, CONFIG_PREFIX)
        self._options = options
        self._ask = requests.ask

    def register_hook(self, hook_name: str, callback: Callable[..., Any]) -> None:
        if not callable(callback):
            raise TypeError(f"the callback of {hook_name} is {type(callback).__name__}, which cannot be called")
        self.registered.hooks.setdefault(hook_name, []).append(callback)
        if hook_name not in HERMES_HOOKS:
            self.registered.remarks.append(f"the hook {hook_name} never fires here: {describe_unsupported(hook_name)}")
        self.on_hook(hook_name)

    def register_command(
        self, name: str, handler: Callable[..., Any], description: str = "", args_hint: str = ""
    ) -> None:
        clean = name.lower().strip().lstrip("/").replace(" ", "-")
        if not clean:
            self.registered.remarks.append("a command without a name was registered; it is left out")
            return
        if self.is_registered:
            self.on_late(f"the command /{clean}")
            return
        facts = {"summary": description or "Plugin command", "usage": (args_hint or "").strip()}
        self.registered.commands[clean] = (handler, facts)

    def register_tool(  # noqa: PLR0913 - Hermes's signature
        self,
        name: str,
        toolset: str,  # noqa: ARG002
        schema: Mapping[str, Any],
        handler: Callable[..., Any],
        check_fn: Callable[[], Any] | None = None,
        requires_env: Any = None,  # noqa: ARG002
        is_async: bool = False,  # noqa: ARG002
        description: str = "",
        emoji: str = "",  # noqa: ARG002
        override: bool = False,
    ) -> None:
        if self.is_registered:
            self.on_late(f"the tool {name}")
            return
        if not (override and self._options.get(OVERRIDE_OPTION) is True) and (taken := self._describe_taken_tool(name)):
            self.registered.remarks.append(taken)
            if name in HERMES_TOOLS.theirs:
                return
        if why := _find_failed_check(check_fn):
            why = f"the tool {name} is not offered to the model: {why}; `hooks reload` asks again"
            self.registered.remarks.append(why)
            if not override:
                return
            handler = _make_refusal(why)  # the tool that it replaces is not offered either
        inner = schema.get("function", schema) if isinstance(schema.get("function", schema), Mapping) else schema
        parameters = inner.get("parameters", inner if inner.get("type") == "object" else None)
        said = description or str(inner.get("description") or "")
        facts = {"description": said, "schema": parameters or {"type": "object"}, "override": bool(override)}
        self.registered.tools[name] = (handler, facts)

    def emit(self, event: str, payload: Mapping[str, Any] | None = None) -> int:
        """Notify the subscribers of `<this plugin>:<event>`; return their number, without waiting for them."""
        if not isinstance(event, str) or not event or ":" in event:
            raise ValueError(f"{event!r} is not a valid event name: write it without colon, for {self.plugin_id}:NAME")
        if payload is not None and not isinstance(payload, Mapping):
            raise TypeError("the payload of an event is a dict, or None")
        said = self._ask("emit", {"name": f"{self.plugin_id}:{event}", "fields": {"payload": dict(payload or {})}})
        return int(said or 0)

    def subscribe(self, event: str, callback: Callable[..., Any]) -> None:
        """Call this callback with the payload of each event `<plugin>:<name>`."""
        if not isinstance(event, str) or not event:
            raise ValueError("to subscribe takes the name of an event, as in other-plugin:done")
        if not callable(callback):
            raise TypeError(f"the callback of {event} is {type(callback).__name__}, which cannot be called")
        self.registered.subscribed.setdefault(event, []).append(callback)

    def spawn_task(self, coro: Coroutine[Any, Any, Any], *, name: str | None = None) -> "asyncio.Task[Any]":
        return asyncio.get_running_loop().create_task(coro, name=name)

    def has_capability(self, capability: str) -> bool:  # noqa: ARG002 - none of Hermes's is granted by that name
        return False

    def _describe_taken_tool(self, name: str) -> str:
        """Say that the name belongs to a tool of Hermes's or of the gateway's own; "" if it is free."""
        if name in HERMES_TOOLS.theirs:
            what = "is not offered: the gateway has one that does the same"
        elif name in OUR_TOOLS_ALONE or any(name == row.ours for row in HERMES_TOOLS.rows):
            what = "gives way to the gateway's own of that name, where an agent has it"
        else:
            return ""
        allow = f"plugins.entries.{self.plugin_id}.{OVERRIDE_OPTION}: true in Hermes's config.yaml"
        return f"the tool {name} {what}; only `override=True` with {allow} takes its place"

    def register_skill(self, name: str, path: Path | str, description: str = "") -> None:
        path = Path(path)
        if self.is_registered:
            self.on_late(f"the skill {name}")
            return
        if not name or not all(letter.isalnum() or letter in "_-" for letter in name):
            raise ValueError(f"{name!r} is not a valid skill name: letters, digits, _ and -")
        if not path.exists():
            raise FileNotFoundError(f"no SKILL.md at {path}")
        folder = path if path.is_dir() else path.parent
        self.registered.skills[name] = {"folder": str(folder.resolve()), "description": description}

    def dispatch_tool(self, tool_name: str, args: Mapping[str, Any] | None = None, **_: Any) -> str:
        """Use a tool of the agent; return its result as the model would see it."""
        return str(self._ask("tool", {"name": tool_name, "args": dict(args or {})}))

    def inject_message(self, content: str, role: str = "user", session_key: str = "") -> bool:
        """Write a message in a conversation in a person's name: in this one, or that of the key."""
        key = session_key or get_session_env("HERMES_SESSION_KEY") or self.session_key.get()
        if not key:
            return False
        text = content if role == "user" else f"[{role}] {content}"
        self._ask("submit", {"text": text, "session": key})
        return True

    def get_config(self, key: str | None = None, default: Any = None) -> Any:
        """Return the value of `set_config`, or else that of `plugins.entries.<name>` in the configuration."""
        if key is None:
            return {**self._options, **{name: self._config.get(name) for name in self._config.keys()}}  # noqa: SIM118 - it is not a dict
        kept = self._config.get(key)
        return _find_option(self._options, key, default) if kept is None else kept

    def set_config(self, key: str, value: Any) -> None:
        self._config.set(key, value)

    def has_plugin(self, name: str) -> bool:
        """Return True only for the plugin itself: plugins here do not see each other."""
        return name == self.plugin_id

    def on_unload(self, callback: Callable[[], Any]) -> Callable[[], Any]:
        """Call this when the plugin is switched off or replaced, or the gateway stops; the last one first."""
        atexit.register(_run_on_unload, callback)
        return callback

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "register_middleware":
            return partial(_add_middleware, self)
        self.registered.remarks.append(f"ctx.{name} is not offered here")
        if name == "register_platform":
            self.registered.remarks.append(NO_NETWORK)
        return MissingPart(f"ctx.{name}", lambda: self.is_registered)


def _find_option(options: Mapping[str, Any], key: str, default: Any) -> Any:
    """Find `a.b` in `settings`, in `config`, or in the entry itself."""
    for found in (options.get("settings"), options.get("config"), options):
        for word in key.split("."):
            found = found.get(word, _ABSENT) if isinstance(found, Mapping) else _ABSENT
        if found is not _ABSENT:
            return found
    return options.get(key, default)


def _run_on_unload(callback: Callable[[], Any]) -> None:
    result = callback()
    if inspect.iscoroutine(result):
        asyncio.run(result)
