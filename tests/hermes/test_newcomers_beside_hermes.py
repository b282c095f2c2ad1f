"""The same packages, helpers and variables in Hermes itself and here: what hooks and plugins see around them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_hooks_beside_hermes import SIDE as GATEWAY_SIDE
from tests.hermes.test_hooks_beside_hermes import seen_in
from tests.hermes.test_newcomers import AROUND, NEWCOMERS, PLACE
from tests.hermes.test_plugins_beside_hermes import SIDE as PLUGIN_SIDE
from tests.hermes.test_plugins_beside_hermes import environ_of, hermes, run

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixture

PLUGINS = ("moonlight", "plugin-twin", "uses-common")
ENABLED = "plugins: {enabled: [twin, uses-common, moonlight]}\n"


def furnish(home: Path) -> None:
    shutil.copytree(NEWCOMERS / "plugins", home / "plugins")
    shutil.copytree(NEWCOMERS / "hooks", home / "hooks")
    (home / "config.yaml").write_text(ENABLED)
    (home / "logs").mkdir()


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    home = tmp_path_factory.mktemp("hermes")
    furnish(home)
    environ = environ_of(home, GATEWAY_ALLOW_ALL_USERS="1")
    environ |= {"PYTHONPATH": str(NEWCOMERS / "packages"), **AROUND}
    done = run([str(hermes), str(PLUGIN_SIDE)], env=environ, cwd=home)
    assert done.stdout.endswith("grey\n"), done.stderr[-2000:]
    plugins = {name: lines for name, lines in seen_in(home).items() if name in PLUGINS}
    done = run([str(hermes), str(GATEWAY_SIDE), "hello"], env=environ, cwd=home)
    assert "answers" in done.stdout, done.stderr[-2000:]
    return {**seen_in(home), **plugins}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        model = ({"user": "moon", "answers": [{"text": "grey"}]}, {"user": "hello", "answers": [{"text": "y" * 1200}]})
        gateway.script(*model, settings="hooks: {quiet-counter: {env: [BELL_TOKEN, SSH_AUTH_SOCK]}}\n")
        furnish(gateway.home.root)
        shutil.copytree(NEWCOMERS / "packages", gateway.home.hook_state / PLACE)
        gateway.start(environ=AROUND)
        names = ("moonlight", "plugin:twin", "uses-common", "desk-bell")
        gateway.until(lambda: {gateway.call("hooks.info", {"name": name})["state"] for name in names} == {"loaded"}, 60)
        assert gateway.say("moon")["reply"] == "grey"
        gateway.until(lambda: [len(seen_in(gateway.home.root).get(name, ())) for name in PLUGINS] == [2, 2, 2])
        gateway.until(lambda: {"desk-bell", "quiet-counter"} <= seen_in(gateway.home.root).keys())
        plugins = {name: lines for name, lines in seen_in(gateway.home.root).items() if name in PLUGINS}
        shutil.rmtree(gateway.home.root / "seen")
        gateway.say("hello", "other")
        gateway.until(lambda: {"desk-bell", "quiet-counter"} <= seen_in(gateway.home.root).keys())
        gateway.stop()
        return {**seen_in(gateway.home.root), **plugins}


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_with_helpers_beside_it_or_from_a_package_is_told_the_same(
    theirs: dict[str, list[Any]], ours: dict[str, list[Any]], name: str
) -> None:
    assert ours[name] == theirs[name]
    assert len(ours[name]) == 2


def test_a_hook_with_a_package_of_its_own_sees_the_same_variables_and_desktop(
    theirs: dict[str, list[Any]], ours: dict[str, list[Any]]
) -> None:
    assert ours["desk-bell"][0][2:] == theirs["desk-bell"][0][2:]
    assert theirs["desk-bell"][0][2:4] == ["sesame", "dong"]


def test_what_the_source_hides_is_seen_where_the_configuration_names_it(
    theirs: dict[str, list[Any]], ours: dict[str, list[Any]]
) -> None:
    assert ours["quiet-counter"][0][1] == theirs["quiet-counter"][0][1]


def test_a_hook_that_lacks_a_package_is_called_by_neither(
    theirs: dict[str, list[Any]], ours: dict[str, list[Any]]
) -> None:
    assert "tabular" not in theirs | ours
    assert json.dumps([*theirs, *ours]).count("tabular") == 0
