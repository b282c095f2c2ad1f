"""Programs of this machine that run once for a file, or for an answer, and print the result.

Each leads a process group of its own, sees the usual variables and none of our secrets, and ends with the gateway,
however that ends: if the fork server forks it, its process belongs to that. They read bytes of strangers, so there they
are in a sandbox: they read themselves, the libraries of this machine, the files that their arguments name and the paths
of the settings, and write into a temporary folder. They bear the mark of the home: processes that outlive the gateway
(detached ones; all of them without a fork server) are ended by the next one.
"""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import msgspec

from gateway.config.settings import ModelSettings, Settings
from gateway.config.voice_settings import ProgramReach, SpeakerSettings, TranscriptionSettings, VoiceSettings
from gateway.errors import VoiceError
from gateway.hooks.manifests.manifest import expand_path
from gateway.hooks.manifests.reach import list_program_files
from gateway.hooks.wires.process_handle import describe_exit
from gateway.hooks.wires.program import (
    ForkProgram,
    ProgramRun,
    ProgramSpec,
    describe_start_failure,
    is_limit_error,
    limit_program,
    open_process,
)
from gateway.hooks.wires.wire import HookFailed
from gateway.threads import run_in_thread
from gateway.worker.process_marks import kill_marked, make_mark
from gateway.worker.sandbox import Sandbox, find_needed_paths

LONGEST_REMARK = 200
NOTHING_MORE = ProgramReach(network=False)
MAY_BE_HELD = "`read` and `network` under voice.transcribe or voice.speak say what it reaches"
OUT_OF_REACH = re.compile(r"denied|not permitted|read-only|resolv|connect|unreachable|no such file", re.IGNORECASE)


class VoicePrograms(msgspec.Struct):
    """The environment of voice programs, the mark of their processes, and the function that starts these."""

    env: Mapping[str, str]
    mark: str
    fork: ForkProgram | None  # None: we do
    has_network: bool = False  # where the settings say nothing of it

    def find(self, name: str) -> str:
        """Return the file of the program with this name, or an empty text."""
        return shutil.which(name, path=self.env.get("PATH", os.defpath)) or ""

    async def run(
        self,
        command: tuple[str, ...],
        folder: Path,
        given: bytes = b"",
        reach: ProgramReach = NOTHING_MORE,
        write: str = "",
    ) -> bytes:
        """Run a program until its end, and return its output; after a cancellation all its processes are gone.

        It can read the bytes `given`, and write into the folder `write` and a temporary one.

        Raises:
            VoiceError: it could not be started, or failed.
        """
        with tempfile.TemporaryDirectory(dir=self.env.get("TMPDIR"), ignore_cleanup_errors=True) as own:
            return await self._run(command, folder, self._hold(command, folder, reach, (own, write)), own, given)

    def _hold(
        self, command: tuple[str, ...], folder: Path, reach: ProgramReach, write: tuple[str, ...]
    ) -> Sandbox | None:
        if self.fork is None:
            return None
        program = list_program_files((self.find(command[0]) or command[0], *command[1:]), folder, self.env)
        around = (str(place) for file in program if ((place := Path(file).parent.parent) / "pyvenv.cfg").is_file())
        named = (part for word in command[1:] for part in (word, word.partition("=")[2]) if part.startswith("/"))
        read = (*find_needed_paths(), *program, *around, *named, *map(expand_path, reach.read))
        net = self.has_network if reach.network is None else reach.network
        write = (*filter(None, write), *map(expand_path, reach.write))
        return Sandbox(read=read, write=write, net=net)

    async def _run(
        self, command: tuple[str, ...], folder: Path, sandbox: Sandbox | None, own: str, given: bytes
    ) -> bytes:
        name, mark, nothing = Path(command[0]).name, make_mark(self.mark), Path("/dev/null")
        env = {**self.env, "TMPDIR": own}
        spec = ProgramSpec(
            name=name,
            command=command,
            folder=folder,
            log=nothing,
            env=env,
            mark=mark,
            memory=None,
            sandbox=sandbox,
            fork=self.fork,
        )
        process = ProgramRun()
        try:
            found = self._find_file(command[0], folder)
            spec = msgspec.structs.replace(spec, command=(found, *command[1:]))
            with anyio.CancelScope(shield=True):  # a half-started one would be left running
                transport = await open_process(spec, process)
        except HookFailed as error:
            raise VoiceError(f"{name}: {error}") from None
        except (OSError, ValueError) as error:
            raise VoiceError(describe_start_failure(spec, error), is_final=not is_limit_error(error)) from None
        try:
            limit_program(transport.get_pid(), spec)
            process.write(given)
            await process.over.wait()
        finally:
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.over.wait()
                await run_in_thread(kill_marked, mark)
        if process.is_too_long:
            raise VoiceError(f"{name} wrote without end")
        if status := transport.get_returncode():
            remark = process.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][-LONGEST_REMARK:]
            held = f" ({MAY_BE_HELD})" if sandbox and OUT_OF_REACH.search(remark) else ""
            raise VoiceError(f"{name}: {describe_exit(status)}{f': {remark}' if remark else ''}{held}")
        return bytes(process.stdout)

    def _find_file(self, name: str, folder: Path) -> str:
        """Find the program's file. Raises OSError if it does not exist."""
        path = self.find(str(folder / name) if "/" in name else name)
        if not path:
            is_there = "/" in name and (folder / name).exists()
            number = errno.EACCES if is_there else errno.ENOENT
            raise OSError(number, os.strerror(number))
        return path


def expand_command(command: tuple[str, ...], file: str, language: str) -> tuple[str, ...]:
    """Put the file and the language into the program's words."""
    return tuple(word.replace("{language}", language).replace("{file}", file) for word in command)


class VoiceModel:
    """A model or a program, as the settings name it. `folder` is for programs."""

    def __init__(self, find_settings: Callable[[], Settings], programs: VoicePrograms, folder: Path) -> None:
        self._find_settings = find_settings
        self._programs, self._folder = programs, folder

    def _choose(self, voice: VoiceSettings) -> SpeakerSettings | TranscriptionSettings:
        raise NotImplementedError

    @property
    def is_on(self) -> bool:
        """Tell if the settings name a model or a program."""
        how = self._choose(self._find_settings().voice)
        return bool(how.model or how.command)

    @property
    def patience(self) -> float:
        return self._find_settings().voice.patience

    @property
    def model(self) -> str:
        """Return the name of the model at its provider; a program has none."""
        found = self._find_model()
        return found.name if found else ""

    def _find_model(self) -> ModelSettings | None:
        settings = self._find_settings()
        return settings.models.get(self._choose(settings.voice).model)
