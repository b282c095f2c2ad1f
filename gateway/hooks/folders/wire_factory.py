"""From a hook that may be started to the wire that reaches it: a worker, a program, a URL, or the gateway itself."""

import time
import uuid
from pathlib import Path
from typing import Any

from gateway.errors import HookError
from gateway.hermes.config import ShellEntry
from gateway.hermes.config_hooks import read_config_entries, shell_digest_of
from gateway.hermes.wires import OutboundWebhook, ShellHookDialect
from gateway.hooks.folders.in_process import InProcessWire
from gateway.hooks.folders.manifest import HANDLER_FILE, Manifest
from gateway.hooks.folders.readiness import Readiness
from gateway.hooks.folders.services import HookServices
from gateway.hooks.remote import Remote, RemoteSpec
from gateway.hooks.wires.program import LastingProgram, OneshotProgram, ProgramSpec
from gateway.hooks.wires.signing import key_of
from gateway.hooks.wires.wire import Capability, Wire
from gateway.worker.protocol import WorkerSpec

START_TIMEOUT = 30.0  # seconds that an import may take


async def open_wire(assessment: Readiness, house: HookServices, serve: Capability, log: Path | None = None) -> Wire:
    """Ready to be called.

    Raises:
        HookError: with the reason; nothing is left of it then.
    """
    manifest, path = assessment.manifest, assessment.folder.path
    assert manifest
    log = log or house.surroundings.log_of(manifest.folder)
    if manifest.kind == "outbound":
        return await _open_outbound(assessment, manifest, house)
    if manifest.url:
        return await Remote.open(_build_remote_spec(assessment, manifest, house), time.time, _make_message_id)
    if manifest.command:
        spec = _build_command_spec(assessment, manifest, house, log)
        if manifest.kind == "shell":
            return OneshotProgram(spec, _build_shell_dialect(assessment, manifest))
        return OneshotProgram(spec) if manifest.oneshot else await LastingProgram.start(spec, serve, house.tasks)
    if is_in_process(assessment, house):
        return InProcessWire.open(manifest.folder, path / HANDLER_FILE, assessment.options, serve)
    return await house.fork_server.start(_build_worker_spec(assessment, manifest, house), serve, log, START_TIMEOUT)


def is_in_process(assessment: Readiness, house: HookServices) -> bool:
    """Whether the handler runs in the gateway's own process: the configuration's word, or that of a hook of ours."""
    manifest = assessment.manifest
    if manifest is not None and manifest.kind != "hook":
        return False
    configured = house.settings_of(assessment.folder.name).isolation
    if configured is not None:
        return configured == "none"
    return manifest is not None and not manifest.isolated and assessment.folder.source.is_opt_in


def _build_worker_spec(assessment: Readiness, manifest: Manifest, house: HookServices) -> WorkerSpec:
    around = house.surroundings
    packages = around.packages_of(manifest.folder)
    return WorkerSpec(
        name=manifest.folder,
        handler=str(assessment.folder.path / manifest.entry),
        env=around.environ_of(manifest),
        options=assessment.options,
        path=(str(packages),) if packages.is_dir() else (),
        modules=around.modules,
        memory=house.settings.memory,
        plugin=_build_plugin_facts(assessment, manifest) if manifest.kind == "plugin" else None,
        label=manifest.name if manifest.hermes else "",
    )


def _build_plugin_facts(assessment: Readiness, manifest: Manifest) -> dict[str, Any]:
    """What a plugin finds as `ctx.manifest`; `guards`: its refusals and failures stop a tool."""
    return {
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "key": manifest.folder,
        "path": str(assessment.folder.path),
        "source": "user",
        "kind": "standalone",
        "guards": bool(manifest.guards),
    }


def _build_command_spec(assessment: Readiness, manifest: Manifest, house: HookServices, log: Path) -> ProgramSpec:
    return ProgramSpec(
        name=manifest.folder,
        command=manifest.command,
        folder=house.surroundings.home if manifest.kind == "shell" else assessment.folder.path,
        log=log,
        env=house.surroundings.environ_of(manifest),
        options=assessment.options,
        is_guard=manifest.on_error == "deny",
        memory=house.settings.memory,
    )


def _build_remote_spec(assessment: Readiness, manifest: Manifest, house: HookServices) -> RemoteSpec:
    key = None
    if manifest.secret_env:
        try:
            key = key_of(house.surroundings.environ.get(manifest.secret_env, ""))
        except ValueError as error:
            raise HookError(f"{manifest.folder}: {manifest.secret_env}: {error}") from None
    is_local = assessment.folder.source.is_local
    return RemoteSpec(manifest.folder, manifest.url, manifest.dialect, key, is_local)


def _build_shell_dialect(assessment: Readiness, manifest: Manifest) -> ShellHookDialect:
    source, folder = assessment.folder.source, assessment.folder.name

    def stands() -> str:
        entry = read_config_entries(source).get(folder)
        return shell_digest_of(entry, source.path.parent) if isinstance(entry, ShellEntry) else ""

    options = manifest.options
    return ShellHookDialect(folder, options["event"], options["matcher"], assessment.digest, stands)


async def _open_outbound(assessment: Readiness, manifest: Manifest, house: HookServices) -> OutboundWebhook:
    key = house.surroundings.environ[manifest.secret_env].encode() if manifest.secret_env else None
    spec = RemoteSpec(manifest.folder, manifest.url, is_local=assessment.folder.source.is_local)
    remote = await Remote.open(spec, time.time, _make_message_id)
    return OutboundWebhook(remote, manifest.options["events"], manifest.options["matcher"], key)


def _make_message_id() -> str:
    return f"msg_{uuid.uuid4().hex}"
