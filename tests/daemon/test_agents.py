"""Agents as the configuration makes them, in a running gateway."""

import pytest

from gateway.errors import ConfigError
from gateway.testing import RecordingHook, gateway_in

pytestmark = pytest.mark.process

LONG = "word " * 300


async def test_a_conversation_that_outgrows_its_models_window_is_summed_up_told_and_goes_on(tmp_path):
    turns = [
        {"user": "assistant:", "text": "They said many words."},
        {"user": "word", "text": "I listen."},
        {"user": "and now", "text": "we go on"},
    ]
    async with gateway_in(tmp_path / "home", *turns, settings="  context_window: 1000\n") as gateway:
        told = RecordingHook(gateway.registry, "session:compress")
        for _ in range(5):
            assert (await gateway.say(LONG))["reply"] == "I listen."
        assert (await gateway.say("and now?"))["reply"] == "we go on"
        compressed = await told.until("session:compress")
        assert (compressed["in_place"], compressed["compression_count"]) == (True, 1)
        assert compressed["session_key"]


async def test_what_a_session_cost_is_summed_over_its_turns_and_said(tmp_path):
    calls = {"tool_calls": [{"name": "calculate", "args": {"expression": "1+1"}}], "usage": {"cost": 0.25}}
    turn = {"user": "sum", "answers": [calls, {"text": "two", "usage": {"input_tokens": 7, "cost": 0.5}}]}
    async with gateway_in(tmp_path / "home", turn) as gateway:
        await gateway.say("sum")
        await gateway.say("sum again")
        said = (await gateway.say("/usage"))["reply"]
        assert said.splitlines()[0] == "14 tokens read, 0 written, in 4 calls of the model, for 1.5000."


async def test_the_scope_of_a_hook_is_enforced_by_who_the_person_is_and_not_by_what_they_say(tmp_path):
    """The terminal's person is the owner: a hook for users below is not theirs to meet, one for owners is."""
    async with gateway_in(tmp_path / "home", {"user": "scope", "text": "reached"}) as gateway:
        met = []
        gateway.registry.on("agent:start", lambda event: met.append("owner"), when={"scope": ["owner", "admin"]})
        gateway.registry.on("agent:start", lambda event: met.append("group"), when={"scope": ["group:staff-only-x"]})
        gateway.registry.on("agent:start", lambda event: met.append("stranger"), when={"scope": ["somebody-else"]})
        assert (await gateway.say("scope: somebody-else"))["reply"] == "reached"
        assert "owner" in met
        assert "stranger" not in met


async def test_a_model_that_is_not_configured_right_stops_the_start_with_what_is_wrong(tmp_path):
    with pytest.raises(ConfigError, match="fallbacks"):
        async with gateway_in(tmp_path / "home", settings="model: {fallbacks: [nowhere]}\n"):
            pass


def writing(path):
    return {"tool_calls": [{"name": "write_file", "args": {"path": str(path), "content": "events: ['*']"}}]}


@pytest.mark.row("T23")
async def test_an_agent_can_never_place_a_hook_wherever_hooks_may_lie_and_however_wide_its_roots_are(tmp_path):
    home = tmp_path / "home"
    (home / "linked" / "tea").mkdir(parents=True)
    (home / "linked" / "tea" / "SKILL.md").write_text("---\nname: tea\ndescription: Tea.\n---\nSteep.\n")
    (home / "skills").mkdir()
    (home / "skills" / "tea").symlink_to(home / "linked" / "tea")
    places = [
        "hooks/evil/HOOK.yaml",
        "plugins/evil/plugin.yaml",
        "further/evil/HOOK.yaml",
        "skills/new/hooks/evil/HOOK.yaml",
        "skills/tea/hooks/evil/HOOK.yaml",
        "linked/tea/hooks/evil/HOOK.yaml",
        "config.yaml",
        "hermes-gateway/config.yaml",
        "BOOT.md",
        "hermes-gateway/journal.db",
        "hermes-gateway/journal.db-wal",
        "hermes-gateway/journal.db-shm",
        "hermes-gateway/search.db-wal",
        "hermes-gateway/gateway.lock",
        "hermes-gateway/logs/gateway.log",
        "hermes-gateway/backups/old.db",
        "hermes-gateway/hooks.lock",
        "hermes-gateway/installed/evil@0/handler.py",
        "hermes-gateway/data/guard/allowed.txt",
        "hermes-gateway/upgrade/plan.json",
        "hermes-gateway/node.json",
        "hermes-gateway/unreadable/telegram.json",
        "hermes-gateway/memory/person/note.md",
        "hermes-gateway/replaced/config.yaml",
        "hermes-gateway/.restore.new/plan.json",
        "hermes-gateway/what-nobody-has-named/plan.json",
        "hermes-gateway/unnamed.json",
        "hermes-gateway/workspace/hooks/evil/HOOK.yaml",
    ]
    before = sorted(path for path in home.rglob("*") if path.is_file())
    answers = [writing(home / place) for place in places]
    kept = [writing(home / "note.txt"), writing(home / "hermes-gateway" / "workspace" / "note.txt")]
    turn = {"user": "place", "answers": [*answers, *kept, {"text": "tried all"}]}
    roots = "['.', hermes-gateway/workspace, hermes-gateway/data/guard]"
    settings = f"tools: {{roots: {roots}}}\nhooks: {{dirs: [further, hermes-gateway/workspace/hooks]}}\n"
    async with gateway_in(home, turn, settings=settings) as gateway:
        told = RecordingHook(gateway.registry, "tool:after")
        assert (await gateway.say("place"))["reply"] == "tried all"
        await gateway.registry.settled()
        errors = [str(event["error"]) for event in told.of("tool:after")]
        assert all("not open to the agent" in error for error in errors[:-2])
        assert (len(errors), errors[-2:]) == (len(places) + 2, ["None", "None"])
    placed = {path for path in home.rglob("*") if path.is_file()} - set(before)
    assert {path for path in placed if "hermes-gateway" not in path.parts} >= {home / "note.txt"}
    assert not [path for path in placed if path.read_bytes() == b"events: ['*']" and path.name != "note.txt"]


@pytest.mark.parametrize("swap", ["the root", "its parent"])
async def test_a_root_in_a_root_that_became_a_link_leads_files_nowhere_else_also_after_a_restart(tmp_path, swap):
    keys, inner = tmp_path / "keys", tmp_path / "work/a/inner"
    for folder in (keys / "inner", inner):
        folder.mkdir(parents=True)
    (keys / "id").write_text("a key")
    (keys / "inner/id").write_text("a key")
    read = {"tool_calls": [{"name": "read_file", "args": {"path": str(inner / "id")}}]}
    settings = f"tools: {{roots: [{tmp_path / 'work'}, {inner}]}}\n"
    for life in range(2):
        async with gateway_in(tmp_path / "home", {"answers": [read, {"text": "read"}]}, settings=settings) as gateway:
            if life == 0:
                old = inner if swap == "the root" else inner.parent
                old.rename(tmp_path / "work/before")
                old.symlink_to(keys)
            told = RecordingHook(gateway.registry, "tool:after")
            await gateway.say("read")
            assert "is outside of" in str((await told.until("tool:after"))["error"])
