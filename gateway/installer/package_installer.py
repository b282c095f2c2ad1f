"""pip in a process that cannot start other programs: so no code of a package runs, wherever it comes from.

pip can refuse to build packages of a registry, but builds a package that another one names by a URL all the same. This
file is run by the Python that has pip.
"""

import os
import runpy
import sys

STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.forkpty")
# A keyring has the password of a registry; musl's loader reports its version on this system.
ASKED_BY_PIP = ("keyring", "ld-musl-")


def refuse_programs(event: str, about: tuple[object, ...]) -> None:
    """Refuse to start programs; this audit hook cannot be removed again."""
    if event not in STARTS:
        return
    program = os.path.basename(str(about[0])) if about else ""  # noqa: PTH119  # as quick to start as pip itself
    if event != "subprocess.Popen" or not program.startswith(ASKED_BY_PIP):
        raise PermissionError("a package would have to be built, or comes from an address of its own")


if __name__ == "__main__":
    sys.addaudithook(refuse_programs)
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
