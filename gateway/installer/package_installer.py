"""pip as it is, in a process that starts no other program: so nothing of a package runs, wherever it comes from.

pip refuses to build what a registry offers when it is told so, and builds what a package names by an address all the
same. This is run as a file, by the Python that has pip.
"""

import os
import runpy
import sys

STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.forkpty")
# A keyring has the password of a registry; musl's loader says which version of it this system has.
ASKED_BY_PIP = ("keyring", "ld-musl-")


def refuse_programs(event: str, about: tuple[object, ...]) -> None:
    """An audit hook, which nothing takes away again."""
    if event not in STARTS:
        return
    program = os.path.basename(str(about[0])) if about else ""  # noqa: PTH119  # as quick to start as pip itself
    if event != "subprocess.Popen" or not program.startswith(ASKED_BY_PIP):
        raise PermissionError("a package would have to be built, or comes from an address of its own")


if __name__ == "__main__":
    sys.addaudithook(refuse_programs)
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
