"""A program of this machine that is run once for a file, or for an answer, and prints what comes of it.

It leads a process group of its own, finds the usual variables around it and none of our secrets, and bears the mark of
the home: whatever is left of it when the gateway is killed is ended by the next one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from gateway.errors import VoiceError
from gateway.hooks.wires.process_handle import describe_exit
from gateway.hooks.wires.program import ProgramRun, ProgramSpec, describe_start_failure, limit_program, open_process
from gateway.worker.process_marks import kill_marked, make_mark

LONGEST_REMARK = 200


@dataclass(frozen=True, slots=True)
class VoiceProgram:
    """Which program, where it runs and what it finds there; `home` is the mark of ours."""

    command: tuple[str, ...]
    folder: Path
    env: Mapping[str, str]
    home: str

    async def run(self, given: bytes = b"") -> bytes:
        """What it prints, when it has ended; whoever is cancelled meanwhile leaves nothing of it behind.

        It can read what is `given` to it.

        Raises:
            VoiceError: it could not be started, or failed.
        """
        name, mark = Path(self.command[0]).name, make_mark(self.home)
        nothing = Path("/dev/null")
        spec = ProgramSpec(
            name=name, command=self.command, folder=self.folder, log=nothing, env=self.env, mark=mark, memory=None
        )
        process = ProgramRun()
        try:
            with anyio.CancelScope(shield=True):  # one that was half started would be nobody's to end
                transport = await open_process(spec, process)
        except (OSError, ValueError) as error:
            raise VoiceError(describe_start_failure(spec, error), is_final=True) from None
        try:
            limit_program(transport.get_pid(), spec)
            process.write(given)
            await process.over.wait()
        finally:
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.over.wait()
                await to_thread.run_sync(kill_marked, mark)
        if process.is_too_long:
            raise VoiceError(f"{name} wrote without end")
        if status := transport.get_returncode():
            remark = process.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][-LONGEST_REMARK:]
            raise VoiceError(f"{name}: {describe_exit(status)}{f': {remark}' if remark else ''}")
        return bytes(process.stdout)
