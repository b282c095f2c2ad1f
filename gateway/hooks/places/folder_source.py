"""Hook folders: found by `stat` alone, read without running code, called over a wire, the link to the hook's process.

The gateway uses a folder only if no other user can have written it. The folder and its code belong to the user of this
process, or to root. Other users may only read the folder, and no code file is a link that leads out of the folder.
"""

import errno
import os
import re
import stat
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.config.settings import PLUGIN_PREFIX
from gateway.errors import HookError
from gateway.hooks.manifests.manifest import (
    HANDLER_FILE,
    MANIFEST_FILE,
    MAX_NAME,
    Manifest,
    find_misnamed_manifest,
    label_of,
)
from gateway.hooks.manifests.own_guards import add_own_guards
from gateway.hooks.manifests.reach import (
    build_sandbox,
    list_certificates,
    list_program_files,
    restrict_environment,
)
from gateway.hooks.nats_transport import is_nats_url
from gateway.hooks.places.dialect import OURS, Dialect
from gateway.hooks.places.history_readers import find_unused_fields
from gateway.hooks.places.hook_files import NODE_PACKAGES, find_kept_files, is_ignored_file
from gateway.hooks.places.idle import find_idle_rule
from gateway.hooks.places.inspection import check_code, is_inside_folder, quote_path, read_code
from gateway.hooks.places.sources import CodeFile, HookVersion, Source, describe_first_error
from gateway.hooks.remote import Remote, RemoteSpec
from gateway.hooks.services import HookServices
from gateway.hooks.stats import HookState
from gateway.hooks.wires.in_process import InProcessWire
from gateway.hooks.wires.program import LastingProgram, OneshotProgram, ProgramSpec
from gateway.hooks.wires.signing import key_of
from gateway.hooks.wires.wire import Capability, Wire
from gateway.worker.process_marks import make_mark
from gateway.worker.protocol import WorkerSpec
from gateway.worker.sandbox import Sandbox
from gateway.yaml_source.tree import Finding, SourceLocation, to_printable

MAX_FILES = 500
MAX_DEPTH = 4
START_TIMEOUT = 30.0  # seconds that an import may take
PASSING_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EAGAIN, errno.ESTALE})
SWITCHED_OFF = "its HOOK.yaml has `enabled: false`"
OTHER_OWNER = "it belongs to another user"
GROUP_WRITABLE, WORLD_WRITABLE = "its group may write to it", "everybody may write to it"
_PROGRAM_STARTS = re.compile(
    rb"\b(subprocess|os\.(system|popen|posix_spawn|spawn[lv]|exec[lv])|create_subprocess_|run_process|open_process|pexpect"
    # libraries that start them, or speak to the desktop as they do
    rb"|webbrowser|plumbum|plyer|notify2|pyperclip|pyautogui|pynput|tkinter|gi\.repository"
    rb"|(import|from)\s+(sh|dbus|dbus_next|dbus_fast|jeepney|pulsectl)\b)"
)
_PACKAGE_FOLDERS = frozenset({NODE_PACKAGES, "site-packages"})  # not the hook's own code


@dataclass(frozen=True)
class FolderSource(Source):
    """A folder with a subfolder for each hook. `is_ours`: the hooks come with the gateway.

    The first of the source's `dialects` decides about the whole source, and owns the subfolders that no other dialect
    claims.
    """

    path: Path
    origin: str
    is_ours: bool = False
    conversations: frozenset[str] | None = None
    dialects: tuple[Dialect, ...] = (OURS,)
    prefix: str = ""

    is_forked = True

    @property
    def is_placed(self) -> bool:
        return not self.is_ours and self.conversations is None

    @property
    def switch_file(self) -> Path | None:
        return self.dialects[0].switch_file

    @property
    def trouble(self) -> str:
        own = self.dialects[0].trouble
        return super().trouble or own

    def is_place(self, folder: Path) -> bool:
        return self.dialects[0].is_place(folder)

    def list(self) -> Iterator[HookVersion]:
        """List the hooks, in the order of their names."""
        try:
            with os.scandir(self.path) as entries:
                found = sorted((entry.name, entry.is_symlink()) for entry in entries)
            own = self._own_findings()
        except (FileNotFoundError, NotADirectoryError):
            return
        for name, is_link in found:
            version = _pass_over(self, name) if is_ignored_name(name) else self._read_folder(name, is_link, own)
            if version:
                yield version

    def find(self, name: str) -> HookVersion | None:
        folder = name.removeprefix(self.prefix)
        if not name.startswith(self.prefix):
            return None
        try:
            if is_ignored_name(folder):
                return _pass_over(self, folder)
            own = self._own_findings()
            is_link = (self.path / folder).is_symlink()
        except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the name
            return None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None
            raise
        return self._read_folder(folder, is_link, own)

    def inspect_manifest(self, version: HookVersion) -> HookVersion:
        version = self._read_manifest(version)
        if version.manifest is None or not version.dialect.is_own:
            return version
        return replace(version, manifest=add_own_guards(version.manifest, {}))

    def _read_manifest(self, version: HookVersion) -> HookVersion:
        """Read the manifest alone; the events that the hook guards may also depend on its code."""
        if not version.is_ready:
            return version
        known = self._list_dialects(version)
        parsed = known[0].read_manifest(version.path, version.bare_name)
        findings = (*version.findings, *parsed.findings)
        manifest = parsed.manifest
        if manifest and version.written_for:
            manifest = msgspec.structs.replace(manifest, written_for=version.written_for)
        dialect = known[0] if manifest is None or manifest.own_key or self.is_ours else known[-1]
        return replace(version, manifest=manifest, denied=parsed.guard, findings=findings, dialect=dialect)

    def inspect(self, version: HookVersion) -> HookVersion:
        if not version.is_ready:
            return version
        version = self._read_manifest(version)
        code = read_code(version, version.manifest.command if version.manifest else ())
        if version.manifest is None:
            denied = version.denied or version.dialect.find_guard(version.bare_name, code.files)
            return replace(version, digest=code.digest, denied=denied)
        manifest = version.manifest.add_reading(files=find_kept_files(_join(code.files)))
        dialect, reason, others = self._find_owner(version, manifest, code.files)
        for other in others:
            manifest = other.find_beside(manifest, code.files)
        manifest = dialect.find(manifest, code.files)
        left_out = find_unused_fields(manifest, code.files, is_own=dialect.is_own)
        starts = bool(manifest.command) or any(map(_PROGRAM_STARTS.search, code.files.values()))
        manifest = manifest.add_reading(left_out=left_out, starts_programs=self.is_placed and starts)
        version = replace(version, manifest=manifest, digest=code.digest, dialect=dialect, owner_reason=reason)
        if self.is_ours:  # the gateway's own hooks were checked before the release
            return version
        findings = (*version.findings, *check_code(version, manifest, code))
        for other in others:
            findings += tuple(other.check_beside(manifest, code.files))
        return replace(version, findings=(*findings, *dialect.check(manifest, code.files)))

    def review(self, version: HookVersion) -> Iterator[Finding]:
        if manifest := version.manifest:
            files = read_code(version, manifest.command).files
            for one in self._list_dialects(version):
                yield from one.review(manifest, version.path, files)

    @cached_property
    def markers(self) -> Mapping[str, tuple[Dialect, ...]]:
        """Map the name of each file that marks a folder as a hook to the dialects of this file."""
        names = dict.fromkeys(name for one in self.dialects for name in one.markers)
        return {name: tuple(one for one in self.dialects if name in one.markers) for name in names}

    def _list_dialects(self, version: HookVersion) -> tuple[Dialect, ...]:
        """List the dialects of the folder's first marker file; without it, the source's first dialect."""
        found = (self.markers[file.name] for file in version.files if file.name in self.markers)
        return next(found, self.dialects[:1])

    def _find_owner(
        self, version: HookVersion, manifest: Manifest, files: Mapping[str, bytes]
    ) -> tuple[Dialect, str, tuple[Dialect, ...]]:
        """Find the dialect that owns the folder, the reason, and the other dialects that comment on the folder."""
        known = self._list_dialects(version)
        if self.is_ours:
            return known[0], "it comes with it", ()
        for one in known:
            claim = one.claim(manifest, files)
            if claim.is_owner:
                beside = known[1:] if one is known[0] else ()
                return one, claim.reason, tuple(two for two in beside if two.speaks_of(manifest, files))
        return known[0], claim.reason, known[1:]

    def why_disabled(self, version: HookVersion) -> str:
        manifest = version.manifest
        if self.is_ours and not (manifest and manifest.enabled):
            return f"comes with the gateway and is off; to switch it on: hermes-gateway hooks enable {version.name}"
        if manifest and not manifest.enabled:
            return SWITCHED_OFF
        return version.dialect.why_disabled(version.bare_name, version.called, self.path, manifest)

    def describe_failure(self, version: HookVersion, said: str, packages: Sequence[str]) -> str:
        known = (one.explain_failure(said, version.called, version.path, packages) for one in self.dialects)
        return next(filter(None, known), "")

    def facts_of(self, version: HookVersion, manifest: Manifest) -> Mapping[str, Any]:
        """Return the facts that the worker needs to load the hook."""
        return version.dialect.facts_of(version.path, manifest, self.path)

    async def open_wire(self, version: HookVersion, services: HookServices, serve: Capability, log: Path) -> Wire:
        manifest = version.manifest
        assert manifest
        if manifest.url:
            return await _open_remote(manifest, services)
        if manifest.command:
            spec = program_spec_of(version, manifest, version.path, services, log)
            if manifest.protocol == "oneshot":
                return OneshotProgram(spec, version.dialect.make_format(manifest))
            return await LastingProgram.start(spec, serve, services.tasks)
        configured = services.settings_of(version.name, version.short).isolation
        wants_none = configured == "none" or (configured is None and self.is_ours and manifest.isolation == "none")
        if wants_none and version.reach is None:
            data = services.environment.data_of(version.store_name)
            file, show = version.path / HANDLER_FILE, version.dialect.show_fields
            return InProcessWire.open(manifest.folder, file, version.options, serve, data, show)
        facts, places = self.facts_of(version, manifest), self.places_of(version)
        worker = worker_spec_of(version, manifest, services, facts, places)
        return await services.fork_server.start(worker, serve, log, START_TIMEOUT)

    def _own_findings(self) -> tuple[Finding, ...]:
        """Check the source's own folder; the findings apply to each hook in the folder."""
        return tuple(_check_permissions(str(self.path), self.path, self.path.stat()))

    def _read_folder(self, name: str, is_link: bool, own: tuple[Finding, ...]) -> HookVersion | None:
        """Read one folder with as few system calls as possible: a source may have a thousand folders.

        `own` are the findings about the source.
        """
        path, label = self.path / name, label_of(name)
        findings: list[Finding] = []
        try:
            if is_link:
                findings += _check_owner(label, path, path.lstat())
            found = path.stat()
            if not stat.S_ISDIR(found.st_mode):
                return None
            files = tuple(_list_code_files(path, label, findings, self.markers))
        except (FileNotFoundError, NotADirectoryError):
            return None  # removed meanwhile, or a link to nothing
        except OSError as error:
            return report_unreadable(self.prefix + name, path, self, error)
        marked = [file.name for file in files if file.name in self.markers]
        is_meant = bool(marked or (MANIFEST_FILE in self.markers and find_misnamed_manifest(path)))
        if not (is_meant or findings) or not self.dialects[0].is_hook(path, marked):
            return None
        findings += [*_check_permissions(label, path, found), *_check_name(name)]
        whole = (*own, *_merge_shared_findings(label, path, findings))
        reason = describe_first_error(whole)
        state: HookState = "refused" if reason else "registered"
        return HookVersion(self.prefix + name, path, self, files, whole, state, reason, dialect=self.dialects[0])


def _join(files: Mapping[str, bytes]) -> bytes:
    return b"\n".join(files.values())


def report_unreadable(name: str, path: Path, source: Source, error: OSError) -> HookVersion:
    """Report a hook that the system does not let us read."""
    is_passing = error.errno in PASSING_ERRORS
    remedy = "it is looked at again" if is_passing else "make it a readable folder of the user that runs the gateway"
    wrong = Finding(SourceLocation(label_of(path.name)), f"cannot be read: {error.strerror}", remedy)
    return HookVersion(name, path, source, (), (wrong,), "refused", describe_first_error((wrong,)))


def is_ignored_name(name: str) -> bool:
    return name.startswith((".", "_", PLUGIN_PREFIX)) or name.endswith((".bak", "~"))


def _pass_over(source: FolderSource, name: str) -> HookVersion | None:
    """Report a folder that is ignored because of its name, if another program loads it; else return None."""
    path, others = source.path / name, [one for one in source.dialects if one.loads_any_name]
    is_loaded = any(all((path / file).exists() for file in one.markers) for one in others)
    if not (is_loaded and source.is_placed):
        return None
    what = f"it is not loaded because of its name, and {others[0].label} loads it"
    remedy = "if it is to run, rename it: no . or _ before the name, and no .bak or ~ behind it"
    said = Finding(SourceLocation(label_of(name)), what, remedy, "warning")
    return HookVersion(source.prefix + name, path, source, (), (said,), "disabled", f"{what}; {remedy}")


def _check_name(name: str) -> Iterator[Finding]:
    if not name.isprintable():
        remedy = "rename the folder: letters, digits, - and _"
        yield Finding(SourceLocation(label_of(name)), "the folder's name has characters that cannot be shown", remedy)
    if len(name) > MAX_NAME:
        remedy = f"rename it, to at most {MAX_NAME} characters"
        yield Finding(SourceLocation(label_of(name)), "the folder's name is too long", remedy)


def _list_code_files(path: Path, label: str, findings: list[Finding], markers: Collection[str]) -> Iterator[CodeFile]:
    """Yield the manifest and every *.py file below the folder, in the order of their names."""
    count = 0
    waiting = [("", 0)]
    while waiting:
        below, depth = waiting.pop()
        with os.scandir(path / below if below else path) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            name = f"{below}{entry.name}"
            if name in markers or entry.name.endswith(".py"):
                if (file := _stat_code_file(path, label, name, entry, findings, name in markers)) is not None:
                    count += 1
                    yield file
            elif depth < MAX_DEPTH and entry.is_dir(follow_symlinks=False) and not _is_skipped_folder(entry.name):
                waiting.append((f"{name}/", depth + 1))
        if count > MAX_FILES:
            what = f"more than {MAX_FILES} Python files"
            findings.append(Finding(SourceLocation(label), what, "install what is not code of this hook elsewhere"))
            return


def find_code_files(folder: Path) -> list[str]:
    """List every *.py file below this folder, which belongs to no hook."""
    return [file.name for file in _list_code_files(folder, label_of(folder.name), [], ())]


def _is_skipped_folder(name: str) -> bool:
    return name.startswith(".") or name in _PACKAGE_FOLDERS or is_ignored_file(name)


def _stat_code_file(
    path: Path, label: str, name: str, entry: os.DirEntry[str], findings: list[Finding], is_meant: bool
) -> CodeFile | None:
    found = entry.stat(follow_symlinks=False)
    place = f"{label}/{to_printable(name)}"
    if stat.S_ISLNK(found.st_mode):
        findings += _check_owner(place, f"{path}/{name}", found)
        if not is_inside_folder(path, name):
            remedy = "put the file itself into the folder"
            findings.append(
                Finding(SourceLocation(place), "is a link that leads out of the folder, or to nothing", remedy)
            )
            return None
        found = entry.stat()
    if not stat.S_ISREG(found.st_mode):
        if is_meant:
            findings.append(Finding(SourceLocation(place), "is not a file", "put a readable file in its place"))
        return None
    findings += _check_permissions(place, f"{path}/{name}", found)
    return CodeFile(name, found.st_size, found.st_ctime_ns, found.st_ino)


def _check_permissions(label: str, path: Path | str, found: os.stat_result) -> Iterator[Finding]:
    yield from _check_owner(label, path, found)
    if found.st_mode & stat.S_IWOTH:
        yield Finding(SourceLocation(label), WORLD_WRITABLE, f"run: chmod o-w {quote_path(path)}")
    elif found.st_mode & stat.S_IWGRP:
        yield Finding(SourceLocation(label), GROUP_WRITABLE, f"run: chmod g-w {quote_path(path)}", "warning")


def _check_owner(label: str, path: Path | str, found: os.stat_result) -> Iterator[Finding]:
    if found.st_uid not in (os.geteuid(), 0):
        what = f"{OTHER_OWNER} (uid {found.st_uid})"
        yield Finding(
            SourceLocation(label), what, f"run: chown {os.geteuid()} {quote_path(path)}, if you trust what is in it"
        )


def _merge_shared_findings(label: str, path: Path, findings: list[Finding]) -> Iterator[Finding]:
    """Merge the warnings about files that a group may write: with umask 002, that is every file."""
    yield from (finding for finding in findings if finding.what != GROUP_WRITABLE)
    if any(finding.what == GROUP_WRITABLE for finding in findings):
        yield Finding(SourceLocation(label), GROUP_WRITABLE, f"run: chmod -R g-w {quote_path(path)}", "warning")


async def _open_remote(manifest: Manifest, services: HookServices) -> Wire:
    key, secret = None, services.environment.environ.get(manifest.secret_env, "")
    password = secret if is_nats_url(manifest.url) else ""
    if manifest.secret_env and not is_nats_url(manifest.url):
        try:
            key = key_of(secret)
        except ValueError as error:
            raise HookError(f"{manifest.folder}: {manifest.secret_env}: {error}") from None
    spec = RemoteSpec(manifest.folder, manifest.url, manifest.dialect, key, is_local=True, password=password)
    return await Remote.open(spec, time.time, make_message_id)


def make_message_id() -> str:
    return f"msg_{uuid.uuid4().hex}"


def program_spec_of(
    version: HookVersion, manifest: Manifest, folder: Path, services: HookServices, log: Path
) -> ProgramSpec:
    """Describe how the hook's command runs, in `folder`."""
    spec = ProgramSpec(
        name=manifest.folder,
        command=manifest.command,
        folder=folder,
        log=log,
        redact=services.redact,
        env={**environment_of(version, manifest, services), **_describe_data(version, services)},
        options=version.options,
        is_guard=manifest.is_guard,
        memory=services.settings.memory,
        mark=make_mark(services.environment.mark),
    )
    return _restrict_program(spec, version, services) if version.reach else spec


def _restrict_program(spec: ProgramSpec, version: HookVersion, services: HookServices) -> ProgramSpec:
    """Add the sandbox to the program, and name the program by its whole path."""
    files = list_program_files(spec.command, spec.folder, spec.env)
    return msgspec.structs.replace(
        spec,
        command=(*(files[:1] or spec.command[:1]), *spec.command[1:]),
        sandbox=sandbox_of(version, services, files),
        fork=services.fork_server.start_program,
    )


def worker_spec_of(
    version: HookVersion, manifest: Manifest, services: HookServices, facts: Mapping[str, Any], places: tuple[str, ...]
) -> WorkerSpec:
    """Describe the worker that runs the hook's code.

    `facts` are what the worker needs to load the hook; `places` are further folders of packages.
    """
    packages = services.environment.packages_of(version.name)
    return WorkerSpec(
        name=manifest.folder,
        handler=str(version.path / manifest.entry),
        env=environment_of(version, manifest, services),
        options=version.options,
        path=(*((str(packages),) if packages.is_dir() else ()), *places),
        modules=services.environment.modules,
        memory=services.settings.memory,
        facts=facts,
        is_offline=services.environment.is_offline,
        label="" if manifest.own_key else manifest.name,
        shapes=version.dialect.shapes,
        data=str(services.environment.data_of(version.store_name)),
        sandbox=sandbox_of(version, services, (str(packages), *places)),
        is_compared=find_idle_rule(version, services) == "compared",
    )


def environment_of(version: HookVersion, manifest: Manifest, services: HookServices) -> dict[str, str]:
    """Return the environment of the hook's process."""
    found = {**version.dialect.environ, **services.environment.environ_of(manifest, version.source.is_placed)}
    data = services.environment.data_of(version.store_name)
    return restrict_environment(found, version.reach, data) if version.reach else found


def sandbox_of(version: HookVersion, services: HookServices, around: tuple[str, ...]) -> Sandbox | None:
    """Build the sandbox of a restricted hook; `around` are further paths that the hook may read."""
    if version.reach is None:
        return None
    environment, data = services.environment, prepare_data_folder(version, services)
    ready = (*around, *environment.modules.values(), *list_certificates(environment.environ))
    return build_sandbox(version.reach, version.path, data, tuple(path for path in ready if path))


def _describe_data(version: HookVersion, services: HookServices) -> dict[str, str]:
    """Return the variable that names the program's data folder; hooks of other dialects do not use the variable."""
    return {} if not version.dialect.is_own else {"HOOK_DATA": str(prepare_data_folder(version, services))}


def prepare_data_folder(version: HookVersion, services: HookServices) -> Path:
    """Make the folder for the hook's files; a hook in a sandbox could not make the folder."""
    folder = services.environment.data_of(version.store_name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
