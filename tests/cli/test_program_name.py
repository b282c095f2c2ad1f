"""Hints name the program as the person has called it, so that they can be typed as they are."""

from pathlib import Path

import pytest

from gateway.cli.program import COMMANDS, HINT
from gateway.testing import GatewayProcess
from tests.cli.typist import Typist

HANDLER = "def handle(event_type, context):\n    pass\n"

pytestmark = pytest.mark.process


def test_only_a_command_is_renamed() -> None:
    hints = [HINT.sub("./x", f"run: hermes-gateway {name}") for name in COMMANDS]
    assert hints == [f"run: ./x {name}" for name in COMMANDS]
    plain = "hermes-gateway is up; see systemd/system/chat-gateway.service and hermes-gateway/config.yaml"
    assert HINT.sub("./x", plain) == plain


def test_in_a_checkout_every_hint_says_how_it_is_called_there(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.environ["HERMES_GATEWAY_CALLED"] = "./x"
        gateway.configure("")
        assert "./x run" in gateway.cli("status").stdout
        assert "start it with: ./x run" in gateway.cli("stop").stderr
        assert " ./x " in gateway.cli("service", "status").stdout
        assert "usage: ./x hooks" in gateway.cli("hooks", "--help").stdout
        assert "try: ./x hooks --help" in gateway.cli("hooks", "lisst").stderr
        gateway.start()
        manifest = "events: [agent:end]\nrequires: {python: [no-such-thing-77]}\n"
        gateway.add_hook("lacks", {"HOOK.yaml": manifest, "handler.py": HANDLER})
        gateway.until(lambda: "./x hooks deps lacks" in gateway.cli("hooks", "list").stdout)
        assert "hermes-gateway hooks deps lacks" in gateway.cli("hooks", "list", "--json").stdout
        with Typist(gateway, "status") as person:
            person.sees("./x open (")
            assert person.leaves() == 0
