"""A named pipe in the place of a file of the home: a program that only opens it to read it waits for ever."""

import os

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

FILES = (
    *("hooks/hooks.json", "hooks/index.json", "hooks/registrations.json"),
    *("../BOOT.md", "hooks.lock", "node.json", "context/x.json", "journal.db-end", "journal.db.lost"),
)


def test_no_file_of_the_home_that_became_a_pipe_holds_the_gateway_up(tmp_path):
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"text": "I am here."})
        gateway.start()
        for life in ("while it runs", "after a start"):
            for name in FILES:
                file = gateway.home.own_folder / name
                file.parent.mkdir(exist_ok=True)
                file.unlink(missing_ok=True)
                os.mkfifo(file)
            gateway.call("hooks.reload", {"name": ""})
            assert gateway.say("are you there?")["reply"] == "I am here.", life
            gateway.stop()
            gateway.start()
