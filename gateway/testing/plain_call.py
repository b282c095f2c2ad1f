"""The plain call of a hook, to test its handler's answer to an event: in this process, without a gateway.

The surroundings are not real: a handler runs in the test's own process, with its rights, modules and environment,
without a time limit; its requests to the gateway are recorded and not done. An exception of the handler leaves `call`
unchanged, so that a debugger stops at the right place. Its answer is judged as in the gateway.
"""

import asyncio
import math
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

from gateway.config.home import get_process_environment
from gateway.daemon.dialects import make_folder_source
from gateway.errors import HookError, unwrap_error
from gateway.events import Event
from gateway.hooks.folders.trial import HookTrial, fit_fields, make_answer, make_event, try_event
from gateway.hooks.manifests.manifest import HANDLER_FILE, Manifest
from gateway.hooks.places.sources import HookVersion, describe_first_error
from gateway.hooks.services import check_request
from gateway.hooks.wires.in_process import InProcessWire
from gateway.hooks.wires.program import LastingProgram, OneshotProgram, ProgramSpec
from gateway.hooks.wires.wire import HookAnswer, HookFailed, Wire
from gateway.worker.loader import load_handler
from gateway.worker.protocol import CallMeta

STOP_TIMEOUT = 1.0
LOG_FILE = "hook.log"


def call(
    folder: Path | str,
    event: str,
    fields: Mapping[str, Any] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    answers: Mapping[str, Any] | None = None,
    store: MutableMapping[str, Any] | None = None,
) -> HookTrial:
    """Call the hook in this folder with a sample of this event, and return the outcome; `fields` override the sample.

    `options` override those of HOOK.yaml, `answers` are a person's answers to questions, by their names; `store` is the
    hook's store, and has what the hook writes to it.

    Raises:
        HookError: the hook was not found, or its answer is invalid.
        Exception: any exception of its handler.
    """
    version = _read_hook(Path(folder).resolve(), options or {})
    assert version.manifest
    given = {**fit_fields(version.manifest), **(fields or {})}
    told = make_event(event, given, answers)
    requests = PlainRequests(version.manifest, {} if store is None else store)
    with tempfile.TemporaryDirectory() as place:
        try:
            trial = _run(partial(_call, version, told, requests, Path(place)))
        except BaseExceptionGroup as group:
            raise unwrap_error(group) from None
        log = Path(place) / LOG_FILE  # a program's log; a handler prints to the test's own output
        output = log.read_text("utf-8", "replace") if log.exists() else ""
    if trial.error:
        raise HookError(f"{trial.error}\n{output}".rstrip())
    return msgspec.structs.replace(trial, output=output)


class PlainRequests(msgspec.Struct, eq=False):
    """The hook's requests to the gateway: recorded in `asked`; its store is a mapping."""

    _manifest: Manifest
    _store: MutableMapping[str, Any]
    asked: list[dict[str, Any]] = []
    is_in_plain_code: bool = False

    def serve(self, verb: str, params: dict[str, Any], during: str) -> Any:  # noqa: ARG002 - the wire's
        """Answer a request: directly in a plain function, by an awaitable in a coroutine.

        Raises:
            RuntimeError: the manifest does not allow it, with the words that the handler would get.
        """
        try:
            check_request(self._manifest, verb, params)
        except HookError as refused:
            raise RuntimeError(str(refused)) from None
        answer = self._answer(verb, params)
        if self.is_in_plain_code:
            return answer
        reply = asyncio.get_running_loop().create_future()
        reply.set_result(answer)
        return reply

    async def serve_program(self, verb: str, params: dict[str, Any], during: str) -> Any:  # noqa: ARG002 - the wire's
        """Answer a request of a program."""
        check_request(self._manifest, verb, params)
        return self._answer(verb, params)

    def _answer(self, verb: str, params: dict[str, Any]) -> Any:
        key = params.get("key")
        match verb:
            case "facts":
                return {}
            case "store.get":
                return self._store.get(str(key), params.get("default"))
            case "store.keys":
                return sorted(self._store)
            case "store.set":
                self._store[str(key)] = params.get("value")
            case "store.delete":
                self._store.pop(str(key), None)
        self.asked.append({"verb": verb, **params})
        return make_answer(verb, params)


class PlainWire(InProcessWire, kw_only=True):
    """The wire to a handler in the test's process: without a time limit, and with its exception in `raised`."""

    requests: PlainRequests
    raised: BaseException | None = None

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:  # noqa: ARG002 - it has none
        try:
            return await super().call(name, fields, meta, math.inf)
        except HookFailed as failed:
            self.raised = failed.__cause__
            raise

    def begin(self, handler: Callable[[], Any]) -> Any:
        self.requests.is_in_plain_code = True
        try:
            return handler()
        finally:
            self.requests.is_in_plain_code = False


def _read_hook(folder: Path, options: Mapping[str, Any]) -> HookVersion:
    source = make_folder_source(folder.parent, "path")
    version = source.find(folder.name)
    if version is None:
        raise HookError(f"{folder} is not a hook: it needs HOOK.yaml, and {HANDLER_FILE} or a command")
    version = source.inspect(version)
    if version.manifest is None or not version.is_ready:
        raise HookError(f"{folder.name}: {describe_first_error(version.findings) or version.reason}")
    if version.manifest.url:
        raise HookError(f"{folder.name} runs behind {version.manifest.url}: call it where it is served")
    return replace(version, options={**version.manifest.options, **options})


def _run(call: Callable[[], Coroutine[Any, Any, HookTrial]]) -> HookTrial:
    """Run the call in a new loop; if the test is a coroutine, whose thread has a loop, in another thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(call)
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(_run, call).result()


async def _call(version: HookVersion, event: Event, requests: PlainRequests, place: Path) -> HookTrial:
    async with _open_wire(version, requests, place) as wire:
        trial = await try_event(version, wire, event)
    if isinstance(wire, PlainWire) and wire.raised:
        raise wire.raised
    return msgspec.structs.replace(trial, asked=tuple(requests.asked))


@asynccontextmanager
async def _open_wire(version: HookVersion, requests: PlainRequests, place: Path) -> AsyncIterator[Wire]:
    manifest = version.manifest
    assert manifest
    if not manifest.command:
        handlers, show = load_handler(manifest.folder, version.path / manifest.entry), version.dialect.show_fields
        yield PlainWire(manifest.folder, handlers, version.options, requests.serve, place, show, requests=requests)
        return
    spec = ProgramSpec(
        name=manifest.folder,
        command=manifest.command,
        folder=version.path,
        log=place / LOG_FILE,
        env={**get_process_environment(), "HOOK_DATA": str(place)},
        options=version.options,
        is_guard=manifest.is_guard,
        memory=None,
    )
    async with anyio.create_task_group() as tasks:
        if manifest.protocol == "oneshot":
            yield OneshotProgram(spec)
            return
        program = await LastingProgram.start(spec, requests.serve_program, tasks)
        try:
            yield program
        finally:
            await program.stop(STOP_TIMEOUT)
            tasks.cancel_scope.cancel()
