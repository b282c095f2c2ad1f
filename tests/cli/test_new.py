"""The files of `hooks new` fit the catalogue's entry of each event: the test passes, and the named actions work."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from gateway import hooks
from gateway.cli.hooks.new import find_points, render_files
from gateway.events.catalogue import EVENT_SPECS, context_name_of, list_matching_events, make_sample
from gateway.testing import GatewayProcess, call
from tests.docs_blocks import Page, Shell
from tests.installer.archives import put

CONTEXTS = {*re.findall(r"^class (\w+)", Path(hooks.__file__).with_name("contexts.pyi").read_text(), re.MULTILINE)}
DECIDED = [name for name, spec in EVENT_SPECS.items() if spec.outcomes or spec.writable]
DECIDES = "from gateway.hooks import {outcome}\n\n\ndef handle(event_type, context):\n    raise {outcome}('because')\n"


def run_plain_test(folder: Path) -> None:
    """The one of the two that it writes which needs no gateway."""
    written = ModuleType("written")
    exec((folder / f"test_{folder.name}.py").read_text(), vars(written))
    written.test_the_hook_alone_takes_its_sample(folder)


def named_in(text: str, pattern: str) -> list[str]:
    found = re.search(pattern, text)
    return re.split(r", | or ", found[1]) if found else []


@pytest.mark.parametrize("event", EVENT_SPECS)
def test_a_hook_that_observes_is_told_of_its_sample(event: str, tmp_path: Path) -> None:
    files = render_files("greet", [event], [], "python")
    run_plain_test(put(tmp_path / "greet", files))
    assert named_in(files["handler.py"], "contexts import (.*)") == [context_name_of(event)]
    assert context_name_of(event) in CONTEXTS


@pytest.mark.parametrize(
    ("events", "intercepts", "contexts", "field"),
    [
        (["agent:start", "agent:end"], [], ["AgentEnd", "AgentStart"], "message"),
        (["agent:end"], ["tool:before"], ["AgentEnd", "ToolBefore"], "session_id"),
        (["command:new", "command:stop"], [], ["Command"], "command"),
        (["schedule:greet", "webhook:greet"], [], ["Schedule", "Webhook"], "id"),
        (["agent:end", "my:event"], [], ["Context"], "id"),
        (["tool:*", "llm:*"], [], ["Context"], "session_id"),
    ],
)
def test_the_types_of_a_hook_are_those_of_all_its_events(
    events: list[str], intercepts: list[str], contexts: list[str], field: str
) -> None:
    source = render_files("greet", events, intercepts, "python")["handler.py"]
    assert named_in(source, "contexts import (.*)") == contexts
    assert f'context: "{" | ".join(contexts)}"' in source
    assert f'context.get("{field}")' in source
    assert {*contexts} <= CONTEXTS
    typed = render_files("greet", events, intercepts, "typescript")["hook.ts"]
    assert re.search(rf"^  {field}: ", typed, re.MULTILINE)
    assert ("[field: string]: unknown;" in typed) is (contexts == ["Context"])
    if events == ["agent:start", "agent:end"]:
        assert "\n  response?: string;\n" in typed


@pytest.mark.parametrize("event", DECIDED)
def test_a_hook_that_decides_names_what_it_can_change_and_decide(event: str, tmp_path: Path) -> None:
    folder = put(tmp_path / "greet", render_files("greet", [], [event], "python"))
    run_plain_test(folder)
    (spec,), (name,) = find_points(event), list_matching_events([event])
    source = (folder / "handler.py").read_text()
    assert {*named_in(source, r"set fields \((.*)\) in")} == spec.writable
    shown = named_in(source, r'context.get\("(.*)"\)')
    assert {*shown} <= spec.writable & make_sample(name).keys()
    outcomes = named_in(source, r"raise (.*)\.\n")
    assert {outcome.lower() for outcome in outcomes} == spec.outcomes
    for outcome in outcomes:
        put(folder, {"handler.py": DECIDES.format(outcome=outcome)})
        tried = call(folder, name)
        assert (tried.remarks, tried.result["decision"]) == ((), outcome.lower())


@pytest.mark.parametrize("event", DECIDED)
def test_a_program_of_the_shell_that_ends_with_2_decides_as_its_comment_says(event: str, tmp_path: Path) -> None:
    folder = put(tmp_path / "greet", render_files("greet", [], [event], "sh"))
    says = "; 2 " in (folder / "hook.sh").read_text()
    put(folder, {"hook.sh": "#!/bin/sh\ncat >/dev/null\necho because >&2\nexit 2\n"})
    (folder / "hook.sh").chmod(0o700)
    (name,) = list_matching_events([event])
    assert (call(folder, name).remarks == ()) is says


def test_a_hook_that_is_called_has_a_schedule_or_a_secret_of_its_own(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        for name, flag, line in (
            ("at-nine", "--schedule", 'schedule: "0 9 * * *"'),
            ("the-builds", "--webhook", "webhook: {secret_env: THE_BUILDS_SECRET, verify: token}"),
        ):
            assert gateway.cli("hooks", "new", name, flag).returncode == 0
            written = (gateway.home.hooks / name / "HOOK.yaml").read_text()
            assert (line in written, "events:" in written) == (True, False), written
            assert gateway.cli("hooks", "check", name).returncode == 0


def test_what_hooks_new_has_written_is_not_published(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        folder = tmp_path / "greet"
        assert gateway.cli("hooks", "new", str(folder)).returncode == 0
        (folder / "LICENSE").write_text("MIT")
        refused = gateway.cli("hooks", "publish", str(folder), str(tmp_path / "index.json"))
        assert refused.returncode == 1
        for place in ("its HOOK.yaml still says", "its README.md still says 'HOST/REPOSITORY@TAG'"):
            assert place in refused.stderr, refused.stderr


@pytest.mark.process
def test_an_agent_that_follows_the_skill_to_the_letter_has_a_hook_that_works(tmp_path: Path) -> None:
    skill = tmp_path / "desk" / ".claude" / "skills" / "write-hook" / "SKILL.md"
    shell = Shell(tmp_path)
    try:
        shown, status = shell.run("hermes-gateway hooks new --skill 2>/dev/null", "")
        assert (status, skill.exists(), max(map(len, shown.splitlines())) < 80) == (1, False, True)
        assert shell.run("hermes-gateway hooks new --skill --yes", "") == (shown, 0)
        assert skill.read_text() == shown
        assert "remove it to have it written again" in shell.run("hermes-gateway hooks new --skill --yes", "")[0]
    finally:
        shell.close()
    (tmp_path / "agent").mkdir()
    Page(skill, tmp_path / "agent").try_all()
