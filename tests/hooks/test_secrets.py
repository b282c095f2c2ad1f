"""A hook may get a secret; its reports about its own failures show none to others."""

from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

SECRET = "canary-8c1f2e90b7"
TELLS = """\
import os


def handle(event_type, context):
    raise RuntimeError("refused: " + os.environ["WEATHER_API_KEY"])
"""
FALLS = """\
import os

raise RuntimeError("no entry with " + os.environ["WEATHER_API_KEY"])


def handle(event_type, context): ...
"""
HEARS = """\
from pathlib import Path


def handle(event_type, context):
    with open(Path(__file__).parent / "heard", "a") as file:
        file.write(context["reason"])
"""


@pytest.mark.row("T28")
def test_a_secret_in_the_error_of_a_hook_is_shown_nowhere(tmp_path: Path) -> None:
    declares = "requires: {env: [WEATHER_API_KEY]}\n"
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("")
        gateway.home.env.write_text(f"WEATHER_API_KEY={SECRET}\n")
        gateway.home.env.chmod(0o600)
        hears = gateway.add_hook("hears", {"HOOK.yaml": "events: [hook:failed]\n", "handler.py": HEARS})
        gateway.add_hook("falls", {"HOOK.yaml": f"events: [agent:end]\n{declares}", "handler.py": FALLS})
        gateway.add_hook("tells", {"HOOK.yaml": f"intercepts: [agent:start]\n{declares}", "handler.py": TELLS})
        gateway.start()
        gateway.say("hello")
        gateway.until(lambda: (hears / "heard").is_file() and "refused: [secret]" in (hears / "heard").read_text())
        gateway.until(lambda: "no entry with [secret]" in gateway.cli("hooks", "list", "--json").stdout)
        told = [gateway.cli(*words, "--json").stdout for words in (("hooks", "list"), ("status",), ("doctor",))]
        told += [gateway.cli("hooks", "info", name).stdout for name in ("falls", "tells")]
        told += [(hears / "heard").read_text(), gateway.home.log.read_text()]
    assert SECRET not in "".join(told)
