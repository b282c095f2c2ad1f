"""The rights agreed at the installation of a hook, and the additional settings of its owner."""

from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.installer.archives import MANIFEST, put

pytestmark = pytest.mark.process


def test_what_the_owners_settings_add_needs_no_yes(gateway: GatewayProcess, greet: Path) -> None:
    gateway.configure("hooks: {greet: {env: [GREET_KEY], on_error: deny}}\n")
    gateway.environ["GREET_KEY"] = "loud"
    put(greet, {"HOOK.yaml": MANIFEST.replace("events:", "intercepts:").replace("agent:end", "message:sending")})
    put(
        greet,
        {"handler.py": "import os\n\n\ndef handle(name, context):\n    print('the key is', os.environ['GREET_KEY'])\n"},
    )
    assert gateway.cli("hooks", "install", str(greet), "--yes").returncode == 0
    gateway.start()
    assert gateway.cli("hooks", "fire", "greet", "message:sending").returncode == 0
    assert "the key is loud" in gateway.cli("hooks", "logs", "greet").stdout


def test_what_was_not_agreed_to_is_not_fired(gateway: GatewayProcess, greet: Path) -> None:
    put(greet, {"HOOK.yaml": "name: greet\nintercepts: [message:sending]\non_error: deny\n"})
    assert gateway.cli("hooks", "install", str(greet), "--yes").returncode == 0
    agreed = gateway.home.hooks_lock.read_text()
    gateway.home.hooks_lock.write_text(agreed.replace('"deny"', '"skip"'))
    gateway.start()
    fired = gateway.cli("hooks", "fire", "greet", "message:sending")
    assert (fired.returncode, "greet is pending: it says more than was agreed to" in fired.stderr) == (1, True)
