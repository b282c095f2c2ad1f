"""The loader of a hook's file, which finds its functions.

The module is `hermes_hook_<name>`, is in `sys.modules` before it runs (forward references of dataclasses and pydantic
look there), and has the `__file__` of its folder. It and its siblings are compiled from the present text in the folder,
never from byte code: a reload after an edit in the same second must not run the old code.
"""

import linecache
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import msgspec

from gateway.events import Event, HookMark, find_marked
from gateway.worker.protocol import LoadedHandlers, MarkedFunction, PluginContents


class SourceOnlyLoader(SourceFileLoader):
    """A loader that reads no byte code."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class Handlers(msgspec.Struct, frozen=True):
    """The functions of one folder: `handle`, and functions marked with `@on`, each under its own name.

    A plugin also has functions that it serves on request, and offers tools, commands and skills.
    """

    handle: Callable[..., Any] | None
    marked: Mapping[str, tuple[Callable[..., Any], HookMark]]
    served: Mapping[str, Callable[..., Any]] = msgspec.field(default_factory=dict)
    offers: PluginContents = msgspec.field(default_factory=PluginContents)

    def bind(self, target: str, event: Event) -> Callable[[], Any]:
        """Bind the function with this name; "" is `handle`. Raises LookupError if it does not exist."""
        if target:
            function = self.marked[target][0] if target in self.marked else self.served[target]
            return lambda: function(event)
        handle = self.handle
        if handle is None:
            raise LookupError("the handler has no `handle`, only functions marked with @on")
        return lambda: handle(event.name, event)

    def describe(self) -> LoadedHandlers:
        """Describe the functions as plain data, for the daemon."""
        marks = [
            MarkedFunction(target=target, names=mark.names, **{**mark.options, "when": mark.when and dict(mark.when)})
            for target, (_, mark) in self.marked.items()
        ]
        return LoadedHandlers(self.handle is not None, tuple(marks), self.offers)


def load_handler(name: str, file: Path) -> Handlers:
    """Import the file. Raises any exception of its code, and TypeError if it has no function to call."""
    source = file.read_bytes()
    module = _create_module(f"hermes_hook_{name}", file)
    read_siblings_from_source(file.parent)
    code = compile(source, str(file), "exec", dont_inherit=True)
    cache_source_lines(str(file), source)
    exec(code, module.__dict__)  # noqa: S102 - running the hook is the purpose of this process
    return _find_handlers(module)


def _create_module(name: str, file: Path) -> ModuleType:
    spec = spec_from_file_location(name, file, loader=SourceOnlyLoader(name, str(file)))
    assert spec
    module = sys.modules[name] = module_from_spec(spec)
    return module


def read_siblings_from_source(folder: Path) -> None:
    """Load modules in the hook's folder from source, for every entry that it adds to `sys.path`."""
    home = folder.resolve()

    def finder(entry: str) -> FileFinder:
        if not Path(entry).resolve().is_relative_to(home):
            raise ImportError(f"{entry} does not belong to the hook")
        return FileFinder(entry, (ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceOnlyLoader, [".py"]))

    sys.path_hooks.insert(0, finder)
    for entry in [entry for entry in sys.path_importer_cache if entry.startswith(str(folder))]:
        del sys.path_importer_cache[entry]


def cache_source_lines(name: str, source: bytes) -> None:
    """Keep the running source for tracebacks, in case the file is edited."""
    text = source.decode("utf-8", "replace")
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)


def _find_handlers(module: ModuleType) -> Handlers:
    handle = getattr(module, "handle", None)
    if handle is not None and not callable(handle):
        raise TypeError(f"`handle` is {type(handle).__name__}, and must be a function handle(event_type, context)")
    found: dict[str, tuple[Callable[..., Any], HookMark]] = {}
    for function, mark in find_marked(module):
        name = getattr(function, "__name__", "hook")
        found[name if name not in found else f"{name}#{len(found)}"] = (function, mark)
    if handle is None and not found:
        raise TypeError("nothing to call: define handle(event_type, context), or mark functions with @on(...)")
    return Handlers(handle, found)
