"""Skills: found without being run, loaded on demand, with hooks in between."""

from pathlib import Path

import pytest

from gateway.agent.skills import find_skills, read_skill_text
from gateway.events import Deny


def write(root: Path, name: str, head: str, body: str = "Do it well.") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{head}\n---\n{body}\n")
    return folder


@pytest.fixture
def root(tmp_path):
    write(tmp_path, "tea", "name: tea\ndescription: Making tea.\nversion: '1'", "Boil water.")
    write(tmp_path, "coffee", "name: coffee\ndescription: Making coffee.\nlicense: MIT", "Grind beans.")
    return tmp_path


def loading(name="tea", **args):
    return {"tool_calls": [{"name": "load_skill", "args": {"skill": name, **args}}]}


def test_skills_are_found_by_their_front_matter(root):
    skills, findings = find_skills([root, root / "missing"])
    assert [(skill.name, skill.description, skill.version) for skill in skills] == [
        ("coffee", "Making coffee.", ""),
        ("tea", "Making tea.", "1"),
    ]
    assert findings == ()


def test_files_beside_a_skill_are_named_but_not_read(root):
    (root / "tea" / "references").mkdir()
    (root / "tea" / "references" / "leaves.md").write_text("many")
    (tea,) = (skill for skill in find_skills([root])[0] if skill.name == "tea")
    assert read_skill_text(tea) == f"Boil water.\n\nFiles of this skill, in {root / 'tea'}: references/leaves.md"


@pytest.mark.parametrize(
    ("name", "head", "place", "words"),
    [
        ("tea", "name: coffee\ndescription: x", "2:7", "not that of its folder, 'tea'"),
        ("Tea", "name: Tea\ndescription: x", "2:7", "not a valid skill name"),
        ("tea--pot", "name: tea--pot\ndescription: x", "2:7", "not a valid skill name"),
        ("t" * 65, f"name: {'t' * 65}\ndescription: x", "2:7", "not a valid skill name"),
        ("tea", "name: tea", "", "no usable description"),
        ("tea", f"name: tea\ndescription: {'x' * 1025}", "3:14", "no usable description"),
        ("tea", "name: [tea", "", "while parsing a flow sequence"),
    ],
)
def test_a_faulty_skill_is_left_out_and_says_where_and_why(tmp_path, name, head, place, words):
    write(tmp_path, name, head)
    skills, findings = find_skills([tmp_path])
    assert skills == ()
    text = "\n".join(str(finding) for finding in findings)
    assert words in text
    assert f"{name}/SKILL.md:{place}" in text


def test_a_file_without_front_matter_or_far_too_long_is_no_skill(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "SKILL.md").write_text("# Tea")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "SKILL.md").write_bytes(b"---\n" + b"x" * 300_000)
    words = [finding.what for finding in find_skills([tmp_path])[1]]
    assert words == ["the skill has no front matter", "the skill is longer than 200,000 bytes"]


def test_of_two_skills_of_one_name_the_first_roots_counts(tmp_path):
    write(tmp_path / "mine", "tea", "name: tea\ndescription: Mine.")
    write(tmp_path / "theirs", "tea", "name: tea\ndescription: Theirs.")
    skills, findings = find_skills([tmp_path / "mine", tmp_path / "theirs"])
    assert [skill.description for skill in skills] == ["Mine."]
    assert "there already" in findings[0].what


async def test_the_model_is_told_of_skills_and_loads_one(stage, root):
    agent = stage.agent(loading(), "Here is your tea.", skills=find_skills([root])[0])
    result = await stage.play(agent)
    assert "- tea: Making tea." in stage.sent(0).system
    assert "Boil water." not in stage.sent(0).system
    assert result.entries[2].content == "Boil water."
    names = [
        name for name, fields in stage.fired if name.startswith("skill:") or fields.get("node_type") == "load_skill"
    ]
    assert names == ["node:before", "skill:before", "skill:after", "node:after"]


@pytest.mark.row("SHE-15")
@pytest.mark.row("SHE-16")
async def test_hooks_may_send_a_load_to_another_skill_and_change_what_is_read(stage, root):
    stage.on("skill:before")(lambda event: {"skill": "coffee", "version": ""})
    stage.on("skill:after")(lambda event: {"content": event["content"] + " Finely."})
    agent = stage.agent(loading(version="1"), "ok", skills=find_skills([root])[0])
    assert (await stage.play(agent)).entries[2].content == "Grind beans. Finely."


@pytest.mark.row("SHE-17")
@pytest.mark.row("SHE-18")
async def test_a_skill_is_unloaded_with_what_it_brought(stage, root):
    changes = []

    async def on_skill(action, skill):
        changes.append((action, skill.name))
        return ["pot"]

    stage.on("skill:before")(lambda event: {"skill": "tea"} if event["action"] == "unload" else None)
    unloading = {"tool_calls": [{"name": "unload_skill", "args": {"skill": "coffee"}}]}
    agent = stage.agent(loading("coffee"), unloading, "ok", skills=find_skills([root])[0])
    result = await stage.play(agent, on_skill=on_skill)
    assert changes == [("load", "coffee"), ("unload", "tea")]
    after = stage.fields("skill:after", 1)
    assert (after["action"], after["skill"], after["tools"]) == ("unload", "tea", ["pot"])
    assert "no longer hold" in result.entries[4].content


async def test_a_denied_or_unknown_skill_is_an_error_for_the_model(stage, root):
    agent = stage.agent(loading(version="7"), loading(), "ok", skills=find_skills([root])[0])
    stage.on("skill:before")(lambda event: None if event["version"] else Deny("No tea today."))
    result = await stage.play(agent)
    assert "skill 'tea 7' not found" in result.entries[2].content
    assert (result.entries[4].content, result.entries[4].error) == ("No tea today.", True)
    assert stage.names.count("skill:before") == stage.names.count("skill:after") == 2


@pytest.mark.row("EDG-71")
async def test_hooks_of_tools_apply_to_skills_too(stage, root):
    stage.on("tool:before")(lambda event: Deny("Not now.") if event["tool"] == "load_skill" else None)
    agent = stage.agent(loading(), "ok", skills=find_skills([root])[0])
    result = await stage.play(agent)
    assert (result.entries[2].content, stage.names.count("skill:before")) == ("Not now.", 0)
