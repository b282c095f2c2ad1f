"""A skill's own hooks in a running gateway: they live while it is loaded, for the conversations that have it."""

import json
import shutil

import pytest

from gateway.hooks.places.installed_source import BUILT_IN_FOLDER
from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

SKILL = "---\nname: coffee\ndescription: How coffee is made.\n---\nGrind it.\n"
LOUD = (
    "import os\n\n\n"
    "def handle(event_type, context):\n"
    "    context['content'] = context['content'].upper() + f' {os.getpid()}'\n"
)
TURNS = (
    {
        "user": "use coffee",
        "answers": [{"tool_calls": [{"name": "load_skill", "args": {"skill": "coffee"}}]}, {"text": "read"}],
    },
    {
        "user": "no coffee",
        "answers": [{"tool_calls": [{"name": "unload_skill", "args": {"skill": "coffee"}}]}, {"text": "put aside"}],
    },
    {"user": "hello", "text": "good day"},
)


@pytest.fixture
def gateway(tmp_path):
    with GatewayProcess(tmp_path / "home") as made:
        made.script(*TURNS)
        folder = made.home.skills / "coffee"
        hook = folder / "hooks" / "loud"
        hook.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL)
        (hook / "HOOK.yaml").write_text("intercepts: [llm:after]\n")
        (hook / "handler.py").write_text(LOUD)
        made.start()
        yield made


def hooks(gateway):
    return [hook["name"] for hook in gateway.call("hooks.list")["hooks"] if hook["origin"] == "skill coffee"]


def said(gateway, session, text="hello"):
    return gateway.say(text, session)["reply"]


def test_they_hear_the_conversations_that_loaded_the_skill_and_share_one_process(gateway):
    assert hooks(gateway) == []
    assert said(gateway, "one") == "good day"
    assert said(gateway, "one", "use coffee").startswith("READ ")  # from the very next event on
    assert hooks(gateway) == ["loud"]
    first = said(gateway, "one")
    assert first.startswith("GOOD DAY ")
    assert said(gateway, "two") == "good day"
    said(gateway, "two", "use coffee")
    assert said(gateway, "two") == said(gateway, "one") == first
    assert said(gateway, "three") == "good day"
    assert said(gateway, "one", "no coffee") == "put aside"
    assert said(gateway, "one") == "good day"
    assert said(gateway, "two") == first
    said(gateway, "two", "no coffee")
    assert hooks(gateway) == []


def test_they_end_with_the_conversation_and_come_back_when_somebody_goes_back_to_it(gateway):
    said(gateway, "one", "use coffee")
    gateway.say("/new", "one")
    gateway.until(lambda: hooks(gateway) == [])
    assert said(gateway, "one") == "good day"
    old = next(row for row in said(gateway, "one", "/sessions").splitlines() if "use coffee" in row)
    said(gateway, "one", f"/resume {old.split()[1]}")
    gateway.until(lambda: hooks(gateway) == ["loud"])
    assert said(gateway, "one").startswith("GOOD DAY ")
    said(gateway, "one", "/branch")
    gateway.until(lambda: said(gateway, "one").startswith("GOOD DAY "))


def test_they_survive_a_crash_of_the_gateway_as_the_words_of_the_skill_do(gateway):
    said(gateway, "one", "use coffee")
    gateway.kill()
    gateway.start()
    assert said(gateway, "one").startswith("GOOD DAY ")
    assert said(gateway, "two") == "good day"


def test_a_skills_hook_never_stands_in_for_one_of_the_same_name(gateway):
    """A skill that comes from elsewhere must not replace what guards here."""
    quiet = "def handle(event_type, context):\n    context['content'] = 'quiet'\n"
    gateway.add_hook("loud", {"HOOK.yaml": "intercepts: [llm:after]\n", "handler.py": quiet})
    gateway.until(lambda: said(gateway, "one") == "quiet")
    assert said(gateway, "one", "use coffee") == "quiet"
    assert said(gateway, "one") == "quiet"
    assert hooks(gateway) == []
    assert unused(gateway) == [f"the hook loud of the skill coffee does not run: {gateway.home.hooks / 'loud'}"]


def unused(gateway):
    """Which hooks of skills do not run, as `hooks list` and `status` have it, with a gateway and without."""
    alone = gateway.call("hooks.list")["unused"]
    told = " ".join(gateway.cli("hooks", "list").stdout.split())
    noted = " ".join(gateway.cli("status").stdout.split())
    assert all(" ".join(one.split()) in told and " ".join(one.split()) in noted for one in alone)
    return [one.partition(": warning: ")[2].partition(" replaces it")[0] for one in alone]


def test_hooks_of_skills_that_do_not_run_say_why_whoever_has_put_them_there(gateway):
    """One is called as a hook that comes with the gateway, though that is off; two skills bring one of one name."""
    assert unused(gateway) == []
    folder = gateway.home.skills / "coffee"
    for name in ("boot-md", "loud"):
        hook = gateway.home.skills / "tea" / "hooks" / name
        shutil.copytree(folder / "hooks" / "loud", hook)
    (gateway.home.skills / "tea" / "SKILL.md").write_text(SKILL.replace("coffee", "tea"))
    gateway.cli("reload")
    built_in, both = unused(gateway)
    assert built_in == f"the hook boot-md of the skill tea does not run: {BUILT_IN_FOLDER / 'boot-md'}"
    where = "for people who have the skill tea, too, whose"
    assert both == f"the hook loud of the skill coffee does not run {where} {folder.parent / 'tea/hooks/loud'}"
    listed = gateway.call("hooks.list")["unused"]
    gateway.stop()
    assert json.loads(gateway.cli("hooks", "list", "--all", "--json").stdout)["unused"] == listed
