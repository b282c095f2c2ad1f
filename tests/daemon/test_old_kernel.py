"""A kernel without Landlock, made of this one by a filter that does not know it: what is not held is said."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from gateway.worker import seccomp

pytestmark = [
    pytest.mark.process,
    pytest.mark.machine,
    pytest.mark.skipif(not seccomp.can_filter(), reason="this kernel filters no system calls"),
]

OLDER = """
import errno, os, sys
from gateway.worker import kernel, landlock, seccomp
kernel.refuse_new_rights()
seccomp.apply_filter([
    (seccomp.LOAD_WORD, 0, 0, seccomp.NUMBER_AT),
    (seccomp.IF_EQUAL, 0, 1, landlock.CREATE_RULESET),
    (seccomp.RETURN, 0, 0, seccomp.REFUSE | errno.ENOSYS),
    (seccomp.RETURN, 0, 0, seccomp.ALLOW),
])
os.execv(sys.executable, [sys.executable, "-m", "gateway.cli", *sys.argv[1:]])
"""
TRIES = """
import socket
from pathlib import Path
def handle(event_type, context):
    found = {}
    for name, act in (("file", Path("/etc/hosts").read_text), ("secret", Path(context.options["secret"]).read_text),
                      ("network", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close())):
        try:
            act()
            found[name] = "done"
        except OSError:
            found[name] = "refused"
    return {"found": found}
"""


class OldGateway(GatewayProcess):
    """The gateway and its commands, on the older kernel."""

    def spawn(self, *args: str, environ: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        command, pipe = [sys.executable, "-c", OLDER, *args], subprocess.PIPE
        return subprocess.Popen(command, env={**self.environ, **(environ or {})}, stdout=pipe, stderr=pipe, text=True)


def test_a_restricted_hook_runs_held_in_less_and_everybody_is_told(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    manifest = f"intercepts: [agent:end]\nnet: false\noptions: {{secret: {tmp_path}/secret}}\n"
    with OldGateway(tmp_path / "home") as gateway:
        gateway.add_hook("held", {"HOOK.yaml": manifest, "handler.py": TRIES})
        gateway.start()
        fired = json.loads(gateway.cli("hooks", "fire", "held", "agent:end", "--json").stdout)
        assert fired["trial"]["result"]["found"] == {"file": "done", "secret": "done", "network": "refused"}
        lacks = "files are not restricted: this kernel has no Landlock"
        assert lacks in gateway.cli("hooks", "info", "held").stdout
        status = gateway.cli("status").stdout
        assert f"! hooks are restricted, and not in all of it: {lacks}" in status
        doctor = gateway.cli("doctor")
        assert doctor.returncode == 1
        assert lacks in doctor.stdout.partition("sandbox:")[2]
