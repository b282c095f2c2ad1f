"""Plugins written for Hermes, unmodified, in the running gateway: what they see, change, decide and offer."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.events import Event
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, UNSUPPORTED_HOOKS
from gateway.hermes.plugin.plugin import pick_arguments
from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

PLUGINS = Path(__file__).parent / "plugins"
SHOW = ("sessions", "show")
ENABLED = (
    *("every-hook", "guards", "changes", "offers", "narrow", "verifies", "nested/inner", "breaks"),
    *("path-guard", "terminal-guard"),
)


def wants(text: str, tool: str, /, **args: Any) -> dict[str, Any]:
    """A turn in which the model uses a tool and then says `grey`."""
    return {"user": text, "answers": [{"tool_calls": [{"name": tool, "args": args}]}, {"text": "grey"}]}


SCRIPT = (
    {"user": "hello", "answers": [{"text": "a grey hello"}]},
    wants("moon", "moon"),
    *(
        wants(f"keep {word}", "remember", text=word)
        for word in ("both", "ask", "ruled", "change", "fail", "plain", "named", "edit")
    ),
    wants("shell", "shell", command="printf out; exit 3"),
    wants("wipe", "shell", command="rm -rf /"),
    wants("peek", "read_file", path=".ssh/id_rsa"),
    wants("note it", "write_file", path="notes.txt", content="one one"),
    wants("improve", "edit_file", path="notes.txt", old="one one", new="two", every=True),
    wants("double", "double", n=21),
    wants("delegate", "delegate", agent="helper", task="look it up"),
    {"user": "broken", "answers": [{"error": {"message": "the model is out of order"}}]},
    {
        "user": "write",
        "answers": [
            {"tool_calls": [{"name": "write_file", "args": {"path": "a.txt", "content": "x"}}]},
            {"text": "first"},
        ],
    },
    *({"user": f"check it again {n}", "answers": [{"text": f"after {n}"}]} for n in range(4)),
    {"user": "as json", "answers": [{"text": '```json\n{"a": 1}\n```'}]},
)


NOTES = """import json, os


def handle(event_type, context):
    said = json.dumps([context["response"], context["response_full"]])
    with open(os.path.join(os.environ["HERMES_HOME"], "seen-hook.jsonl"), "a") as file:
        file.write(said + "\\n")
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script(*SCRIPT, settings="tools: {shell: allow}\n")
        shutil.copytree(PLUGINS, gateway.home.plugins)
        gateway.add_hook("notes", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": NOTES})
        settings = {"enabled": list(ENABLED), "disabled": [], "entries": {"offers": {"size": 7}}}
        gateway.home.hermes_config.write_text(json.dumps({"plugins": settings}))
        gateway.start()
        gateway.until(lambda: all(one["state"] not in ("starting", "registered") for one in plugins(gateway).values()))
        yield gateway


@pytest.fixture(scope="module")
def told(gateway: GatewayProcess) -> dict[str, list[dict[str, Any]]]:
    """Return the calls of `every-hook`, by hook name, once all have come."""
    for text in ("hello", "moon", "shell", "delegate", "broken", "keep ask", "/approve", "/new", "hello"):
        gateway.say(text)
    path, last = gateway.home.root / "seen-plugin.jsonl", "on_session_end"

    def seen() -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                name, kwargs = json.loads(line)
                found.setdefault(name, []).append(kwargs)
        return found

    gateway.until(lambda: len(seen().get(last, ())) >= 7 and len(seen().get("post_llm_call", ())) >= 6)
    return seen()


def plugins(gateway: GatewayProcess) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in gateway.call("hooks.list")["hooks"] if one["origin"] == "plugins"}


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def last_result(gateway: GatewayProcess, session: str = "main") -> str:
    """Return the model's result of its last tool."""
    shown = json.loads(gateway.cli(*SHOW, f"agent:main:terminal:dm:{session}", "--json").stdout)
    return str([one["content"] for one in shown["entries"] if one["role"] == "tool"][-1])


KEYS = {
    "pre_tool_call": "tool_name args task_id session_id tool_call_id turn_id api_request_id middleware_trace",
    "post_tool_call": "tool_name args task_id session_id tool_call_id turn_id api_request_id middleware_trace result "
    "duration_ms status error_type error_message",
    "transform_tool_result": "tool_name args result duration_ms status error_type error_message",
    "transform_llm_output": "response_text session_id model platform",
    "pre_llm_call": "session_id task_id turn_id user_message conversation_history is_first_turn model sender_id",
    "post_llm_call": "session_id task_id turn_id user_message assistant_response conversation_history model platform",
    "pre_api_request": "task_id turn_id api_request_id session_id user_message conversation_history platform model "
    "provider base_url api_mode api_call_count request_messages message_count tool_count approx_input_tokens "
    "request_char_count max_tokens started_at middleware_trace request",
    "post_api_request": "task_id turn_id api_request_id session_id platform model provider base_url api_mode "
    "api_call_count api_duration started_at ended_at finish_reason message_count response_model response usage "
    "assistant_message assistant_content_chars assistant_tool_call_count",
    "api_request_error": "task_id turn_id api_request_id session_id platform model provider base_url api_mode "
    "api_call_count api_duration started_at ended_at status_code retry_count max_retries retryable reason error",
    "on_session_start": "session_id model platform",
    "on_session_end": "session_id task_id turn_id completed interrupted model platform",
    "on_session_finalize": "session_id platform reason old_session_id new_session_id",
    "on_session_reset": "session_id platform reason old_session_id new_session_id",
    "subagent_start": "parent_session_id parent_turn_id parent_subagent_id child_session_id child_subagent_id "
    "child_role child_goal",
    "subagent_stop": "parent_session_id parent_turn_id child_session_id child_role child_summary child_status "
    "duration_ms",
    "pre_gateway_dispatch": "event gateway session_store",
    "pre_approval_request": "command description pattern_key pattern_keys session_key surface turn_id tool_call_id",
    "post_approval_response": "command description pattern_key pattern_keys session_key surface turn_id tool_call_id "
    "choice decided_by",
    "on_stream_start": "delta session_id",
    "on_stream_delta": "delta session_id",
    "on_stream_end": "final_text finished error session_id",
    "post_gateway_admission": "session_key platform source message_id text",
    "on_human_input_request": "kind request_id session_id session_key platform prompt",
    "on_human_input_resolved": "kind request_id session_id session_key platform prompt outcome",
    "pre_command": "surface command alias_used args_raw session_key platform",
}


@pytest.mark.row("HRM-29", "HRM-33", "HRM-34", "HRM-40")
@pytest.mark.parametrize("name", KEYS)
def test_a_hook_gets_the_arguments_that_hermes_gives_it(told: dict[str, list[dict[str, Any]]], name: str) -> None:
    assert told[name][0].keys() >= {*KEYS[name].split(), "telemetry_schema_version"}
    assert told[name][0]["telemetry_schema_version"] == "hermes.observer.v1"


def test_hooks_of_things_that_are_not_here_never_fire_and_that_is_said(
    gateway: GatewayProcess, told: dict[str, list[dict[str, Any]]]
) -> None:
    findings = "\n".join(plugins(gateway)["every-hook"]["findings"])
    for name in ("kanban_task_claimed", "pre_tts_synthesis", "no_such_hook"):
        assert name not in told
        assert f"the hook {name} never fires here" in findings


def test_a_name_of_hermes_is_in_the_table_or_has_a_reason() -> None:
    assert not HERMES_HOOKS.keys() & UNSUPPORTED_HOOKS.keys()


@pytest.mark.row("HRM-35", "HRM-42")
def test_a_turn_is_told_with_its_history_and_results(told: dict[str, list[dict[str, Any]]]) -> None:
    first, second = told["pre_llm_call"][:2]
    assert (first["user_message"], first["is_first_turn"], second["is_first_turn"]) == ("hello", True, False)
    assert [one["role"] for one in second["conversation_history"]] == ["user", "assistant", "user"]
    (call,) = told["post_api_request"][1]["response"]["assistant_message"]["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == ("moon", "{}")
    after = told["post_llm_call"][1]["conversation_history"]
    assert [one["role"] for one in after] == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert after[4]["tool_call_id"] == after[3]["tool_calls"][0]["id"]
    ended = told["post_tool_call"][0]
    assert (ended["status"], ended["result"]) == ("ok", '{"phase": "full"}')
    assert [one["completed"] for one in told["on_session_end"]][:2] == [True, True]


def test_a_failing_model_and_a_refused_tool_are_told_as_such(told: dict[str, list[dict[str, Any]]]) -> None:
    assert "out of order" in told["api_request_error"][0]["error"]["message"]
    assert told["subagent_start"][0]["child_goal"] == "look it up"
    assert told["subagent_stop"][0]["child_status"] == "completed"


@pytest.mark.row("HRM-41")
def test_a_new_session_is_told_with_the_old_one(told: dict[str, list[dict[str, Any]]]) -> None:
    (over,), (reset,) = told["on_session_finalize"], told["on_session_reset"]
    assert (over["reason"], over["old_session_id"]) == ("new_session", told["pre_llm_call"][0]["session_id"])
    assert reset["session_id"] == reset["new_session_id"] == over["new_session_id"]
    assert len(told["on_session_start"]) == 3  # the sub-agent has one too, as under Hermes


def test_a_question_and_its_answer_are_told(told: dict[str, list[dict[str, Any]]]) -> None:
    asked, answered = told["pre_approval_request"][0], told["post_approval_response"][0]
    assert "remember" in asked["command"]
    assert (answered["choice"], answered["decided_by"]) == ("once", "user")


def test_a_wait_for_a_person_is_one_from_its_begin_to_its_end(told: dict[str, list[dict[str, Any]]]) -> None:
    begun, over = told["on_human_input_request"][0], told["on_human_input_resolved"][0]
    assert {**begun, "outcome": "once"} == over
    assert begun["kind"] == "approval"


@pytest.mark.parametrize(("interrupted", "is_told"), [(True, True), (False, False)])
def test_a_loop_is_stopped_when_somebody_stops_it(interrupted: bool, is_told: bool) -> None:
    event = Event("agent:end", {"session_key": "k", "interrupted": interrupted, "time": 1.0})
    assert (HERMES_HOOKS["agent_loop_stopped"].build_arguments(event) is not None) is is_told


def test_a_message_has_hermes_shape(told: dict[str, list[dict[str, Any]]]) -> None:
    assert told["pre_gateway_dispatch"][0]["event"] == {"text": "hello", "platform": "terminal"}


def test_block_beats_approve_and_modify_merges(gateway: GatewayProcess) -> None:
    gateway.say("keep both", "block")
    assert last_result(gateway, "block") == "blocked by the second"
    gateway.say("keep change", "block")
    assert last_result(gateway, "block") == "Remembered: changed"


def test_an_action_may_be_a_member_of_an_enumeration(gateway: GatewayProcess) -> None:
    gateway.say("keep named", "enum")
    assert last_result(gateway, "enum") == "blocked by name"


def test_a_change_of_the_arguments_themselves_counts_and_the_next_callback_sees_it(gateway: GatewayProcess) -> None:
    gateway.say("keep edit", "edit")
    assert last_result(gateway, "edit") == "Remembered: edited twice"


def test_a_table_of_paths_guards_and_changes_by_hermess_names(gateway: GatewayProcess) -> None:
    for text, result in (
        ("peek", ".ssh/id_rsa is private (read_file, 1)"),
        ("note it", "Created notes.txt (7 characters)."),
        ("improve", "Edited notes.txt (1 place)."),
    ):
        gateway.say(text, "paths")
        assert last_result(gateway, "paths") == result
    assert (gateway.home.own_folder / "workspace" / "notes.txt").read_text() == "TWO"
    assert "patch=1 read_file=1" in gateway.say("/path-guard", "paths")["reply"]
    listed = json.loads(gateway.say("/path-list", "paths")["reply"])
    assert "./notes.txt" in listed["files"]
    assert listed["total_count"] == len(listed["files"])


def test_a_guard_of_the_terminal_stops_the_shell_and_names_that_are_not_here_are_told(gateway: GatewayProcess) -> None:
    gateway.say("wipe", "wipe")
    assert last_result(gateway, "wipe").startswith("Blocked by terminal-guard")
    told = json.loads(gateway.cli("hooks", "check", "terminal-guard", "--json").stdout)["hooks"]["terminal-guard"]
    (found,) = (one for one in told if "its guard names" in one)
    assert found.startswith("terminal-guard/__init__.py:1")
    assert "not here: process, shell, run_shell_command; shell is told to it as terminal" in found


def test_who_overrides_the_terminal_takes_the_place_of_the_shell(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(wants("ours", "shell", command="id"), wants("its", "terminal", command="id"))
        shutil.copytree(PLUGINS / "padded-cell", gateway.home.plugins / "padded-cell")
        entries = {"padded-cell": {"allow_tool_override": True}}
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["padded-cell"], "entries": entries}}))
        gateway.start()
        gateway.until(lambda: plugins(gateway)["padded-cell"]["state"] == "loaded")
        gateway.say("its")
        assert last_result(gateway) == "pretended: id"
        gateway.say("ours")
        assert "tool 'shell' not found" in last_result(gateway)


TAINT = """
import time

read = []

def after(tool_name="", **_):
    time.sleep(0.4)
    read.append(tool_name)

def guard(tool_name="", **_):
    if tool_name == "terminal" and "read_file" in read:
        return {"action": "block", "message": "tainted by what was read"}

def register(ctx):
    ctx.register_hook("post_tool_call", after)
    ctx.register_hook("pre_tool_call", guard)
"""


def test_a_plugin_decides_after_it_was_told_of_what_came_before(tmp_path: Path) -> None:
    """Under Hermes one callback follows the other: what one notes the next one knows, however long it took to note."""
    calls = [("read_file", {"path": "notes.txt"}), ("shell", {"command": "echo out"})]
    answers = [{"tool_calls": [{"name": name, "args": args}]} for name, args in calls]
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "go", "answers": [*answers, {"text": "done"}]}, settings="tools: {shell: allow}\n")
        folder = gateway.home.plugins / "taint"
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text("name: taint\n")
        (folder / "__init__.py").write_text(TAINT)
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["taint"]}}))
        gateway.start()
        gateway.say("go")
        assert "tainted by what was read" in last_result(gateway)


@pytest.mark.parametrize("is_whole", [True, False], ids=["moved", "copied"])
def test_a_category_that_is_put_in_while_the_gateway_runs_is_one(tmp_path: Path, is_whole: bool) -> None:
    """And what is put into it later, and taken out of it."""
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(wants("wipe", "shell", command="rm -rf /nothing"), settings="tools: {shell: allow}\n")
        gateway.home.plugins.mkdir()
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["terminal-guard", "padded-cell"]}}))
        gateway.start()
        place = (tmp_path if is_whole else gateway.home.plugins) / "security"
        shutil.copytree(PLUGINS / "terminal-guard", place / "terminal-guard")
        if is_whole:
            place.rename(gateway.home.plugins / "security")
        gateway.until(lambda: plugins(gateway).get("terminal-guard", {}).get("state") == "loaded")
        gateway.say("wipe")
        assert "blocked" in last_result(gateway).lower()
        shutil.copytree(PLUGINS / "padded-cell", gateway.home.plugins / "security" / "padded-cell")
        gateway.until(lambda: "padded-cell" in plugins(gateway))
        source = gateway.home.plugins / "security" / "terminal-guard" / "__init__.py"
        source.write_text(source.read_text().replace("Blocked by", "Stopped by"))
        gateway.until(lambda: "Stopped by" in gateway.say("wipe", "anew")["reply"] + last_result(gateway, "anew"))
        shutil.rmtree(gateway.home.plugins / "security")
        gateway.until(lambda: not plugins(gateway))


def test_a_guard_that_fails_denies(gateway: GatewayProcess) -> None:
    gateway.say("keep fail", "fail")
    assert last_result(gateway, "fail").startswith("plugin:guards guards this and failed")
    assert plugins(gateway)["guards"]["last_error"]["message"] == "__init__.py:29: ValueError: the guard is ill"


def test_approve_asks_the_person_and_no_is_no(gateway: GatewayProcess) -> None:
    asked = gateway.say("keep ask", "no")
    assert "because it is asked" in asked["reply"]
    gateway.say("/deny", "no")
    gateway.until(lambda: "did not allow" in gateway.cli(*SHOW, "agent:main:terminal:dm:no", "--json").stdout)


def test_an_approval_for_good_covers_its_rule_in_every_session(gateway: GatewayProcess) -> None:
    gateway.say("keep ruled", "rule")
    gateway.say("/approve always", "rule")
    gateway.until(lambda: gateway.say("keep ruled", "other")["reply"] == "blue")


@pytest.mark.row("HRM-36", "HRM-37", "HRM-38", "HRM-39")
def test_context_joins_the_persons_message_and_is_not_stored(
    gateway: GatewayProcess, told: dict[str, list[dict[str, Any]]]
) -> None:
    request = told["pre_api_request"][0]
    said = next(one for one in request["request_messages"] if one["role"] == "user")
    assert said["content"] == "hello\n\nCONTEXT of hello\n\na plain text"
    assert not any("CONTEXT" in one["content"] for one in request["request_messages"] if one["role"] == "system")
    assert not any("CONTEXT" in str(one) for one in told["post_llm_call"][1]["conversation_history"])
    assert "CONTEXT" not in gateway.cli(*SHOW, "agent:main:terminal:dm:main", "--json").stdout


def test_results_output_and_reply_are_transformed_by_the_first_that_has_a_text(gateway: GatewayProcess) -> None:
    assert gateway.say("moon", "change")["reply"] == "blue"
    assert last_result(gateway, "change") == "night"
    gateway.say("shell", "change")
    assert last_result(gateway, "change") == "<out|3>\n[exit code 3]"


def test_hooks_are_told_the_reply_that_plugins_left_in_both_its_forms(gateway: GatewayProcess) -> None:
    gateway.say("hello", "redacted")
    gateway.until(lambda: ["a blue hello"] * 2 in lines(gateway.home.root / "seen-hook.jsonl"))
    assert "grey" not in (gateway.home.root / "seen-hook.jsonl").read_text()


def test_a_message_is_skipped_or_rewritten(gateway: GatewayProcess) -> None:
    assert gateway.say("drop me", "gate")["reply"] == ""
    assert gateway.say("rewrite me", "gate")["reply"] == "a blue hello"


@pytest.mark.row("HRM-31")
def test_a_failing_callback_takes_nothing_from_the_others(gateway: GatewayProcess) -> None:
    gateway.say("hello", "ill")
    assert "a failing observer" in (gateway.home.hook_logs / "plugin:changes.log").read_text()
    assert plugins(gateway)["changes"]["state"] == "loaded"


@pytest.mark.row("HRM-30")
def test_callbacks_get_only_what_they_declare_and_may_run_loops_of_their_own(gateway: GatewayProcess) -> None:
    gateway.say("hello", "narrow")
    seen = lines(gateway.home.root / "seen-narrow.jsonl")
    assert ["two", "hello", True] in seen
    assert [word[0] for word in seen][:6] == ["two", "nothing", "later", "own loop", "object", "slept"]
    assert ["object", "script", "hermes.observer.v1"] in seen
    gateway.until(lambda: ["newer", "end_turn", False] in lines(gateway.home.root / "seen-narrow.jsonl"))


NEWER_KEYS = {  # what 0.20 to 0.22 have added, for callbacks that name it
    "pre_llm_call": "parent_session_id",
    "pre_api_request": "system_prompt retry_count",
    "post_api_request": "context_length first_chunk_at moa_references",
    "transform_llm_output": "turn_id",
    "transform_terminal_output": "tool_call_id",
    "subagent_stop": "tool_call_history",
    "on_session_end": "turn_exit_reason failed",
}


@pytest.mark.parametrize("name", NEWER_KEYS)
def test_a_callback_that_names_what_newer_hermes_adds_is_given_it(name: str) -> None:
    row, wanted = HERMES_HOOKS[name], NEWER_KEYS[name].split()
    named = row.build_named(Event(row.events[0])) if row.build_named else {}
    callback = eval(f"lambda {', '.join(wanted)}: None")
    assert list(pick_arguments(callback, {}, row.is_loose, named)) == wanted
    assert pick_arguments(lambda **_: None, {}, row.is_loose, named) == {}


def test_pre_verify_sends_the_model_on_three_times_when_files_were_changed(gateway: GatewayProcess) -> None:
    assert gateway.say("write", "verify")["reply"] == "after 2"
    seen = [line for line in lines(gateway.home.root / "seen-verify.jsonl") if line[1] == ["a.txt"]]
    assert seen == [[0, ["a.txt"], True, "first"], [1, ["a.txt"], True, "after 0"], [2, ["a.txt"], True, "after 1"]]


def test_commands_are_run_listed_and_never_take_a_name_of_ours(gateway: GatewayProcess) -> None:
    assert gateway.say("/greet Ann")["reply"] == "good evening Ann"
    said = gateway.say("/help")["reply"]
    assert "/greet <x> - for the tests" in said
    assert "good evening" not in said
    assert gateway.say("/inner")["reply"] == "hermes_plugins.nested__inner"  # as Hermes calls it


def test_state_and_configuration_last(gateway: GatewayProcess) -> None:
    assert gateway.say("/count")["reply"] == "1 True ['count']"
    assert gateway.say("/config red")["reply"] == '["red", 7, {"colour": "red", "size": 7}]'
    gateway.call("hooks.reload", {"name": "offers"})
    assert gateway.say("/count")["reply"] == "2 True ['count']"
    assert gateway.say("/config")["reply"] == '["red", 7, {"colour": "red", "size": 7}]'


def test_the_model_answers_a_plugin_and_its_choice_is_the_gateways(gateway: GatewayProcess) -> None:
    said = gateway.say("/ask hello")["reply"]
    assert said.startswith("a grey hello script {'a': 1} a plugin cannot choose the model")
    assert gateway.say("/asks-later hello")["reply"] == "a grey hello"


def test_a_plugin_uses_the_agents_tools(gateway: GatewayProcess) -> None:
    said = gateway.say("/use 6*7")["reply"]
    assert said.startswith('{"result": "42"}')
    assert '{"error": "tool' in said


def test_a_plugin_speaks_in_a_conversation(gateway: GatewayProcess) -> None:
    assert gateway.say("/inject hello", "spoken")["reply"] == "True"
    gateway.until(lambda: "a blue hello" in gateway.cli(*SHOW, "agent:main:terminal:dm:spoken", "--json").stdout)


def test_tools_of_a_plugin_are_the_agents_and_take_no_name_of_ours(gateway: GatewayProcess) -> None:
    gateway.say("double", "tools")
    assert json.loads(last_result(gateway, "tools")) == {"double": 42, "session": True}
    tools = [one["function"]["name"] for one in lines_of_requests(gateway)[-1]["request"]["body"]["tools"]]
    assert "double" in tools
    assert "hidden" not in tools
    assert tools.count("calculate") == 1


def lines_of_requests(gateway: GatewayProcess) -> list[dict[str, Any]]:
    seen = lines(gateway.home.root / "seen-plugin.jsonl")
    return [kwargs for name, kwargs in seen if name == "pre_api_request"]


def test_skills_of_a_plugin_can_be_loaded(gateway: GatewayProcess) -> None:
    gateway.say("hello", "skill")
    system = lines_of_requests(gateway)[-1]["request_messages"][0]["content"]
    assert "offers:stars: how to read the stars" in system


def test_what_is_not_offered_is_said_and_the_rest_works(gateway: GatewayProcess) -> None:
    findings = "\n".join(plugins(gateway)["offers"]["findings"])
    for name in ("register_middleware", "register_cli_command", "register_image_gen_provider"):
        assert f"ctx.{name} is not offered here" in findings
    assert "the tool hidden is not offered to the model" in findings


def test_only_what_is_enabled_runs_and_what_breaks_says_why(gateway: GatewayProcess) -> None:
    found = plugins(gateway)
    assert found["off"]["state"] == "disabled"
    assert "hooks enable off" in found["off"]["reason"]
    assert "register() raised OSError: the sky is not there" in found["breaks"]["reason"]
    assert any("breaks" in one for one in gateway.call("status")["attention"])
    assert gateway.say("/never")["reply"] == "never", "as in Hermes, what it registered before that counts"


def test_an_edit_is_loaded_and_a_plugin_switched_off_is_ended(gateway: GatewayProcess) -> None:
    (gateway.home.plugins / "offers" / "words.py").write_text('GREETING = "good morning"\n')
    gateway.until(lambda: gateway.say("/greet Ann")["reply"] == "good morning Ann")
    folder = gateway.home.plugins / "offers"
    (folder / "unloaded.txt").unlink(missing_ok=True)
    gateway.call("hooks.disable", {"name": "offers"})
    gateway.until((folder / "unloaded.txt").exists)
    assert gateway.say("/greet Ann")["reply"].startswith("Unknown command here")
