"""AGENTS.md and its like: read when a turn begins, bounded, and never a reason to fail."""

import os

from gateway.agent.context_files import ContextFiles


async def test_what_people_wrote_for_agents_stands_behind_the_instructions_as_it_is_now(stage, tmp_path):
    file = tmp_path / "AGENTS.md"
    file.write_text("Answer in French.")
    files = {"context_files": (file, tmp_path / "missing.md"), "kept_files": ContextFiles(tmp_path / "kept")}
    agent = stage.agent("oui", "ja", instructions="You help.", **files)
    await stage.play(agent)
    assert stage.sent().system == "You help.\n# AGENTS.md\n\nAnswer in French."
    file.write_text("Answer in German.")
    await stage.play(agent)
    assert "German" in stage.sent().system


async def test_what_is_no_file_or_too_long_holds_nothing_up(stage, tmp_path):
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "long.md").write_text("x" * 100_000)
    (tmp_path / "odd.md").write_bytes(b"\xff\xfe text")
    files = tuple(tmp_path / name for name in ("pipe.md", "long.md", "odd.md"))
    kept = ContextFiles(tmp_path / "kept")
    assert (await stage.play(stage.agent("ok", context_files=files, kept_files=kept))).reply == "ok"
    assert "[cut after 32000 bytes]" in stage.sent().system
    assert len(stage.sent().system) < 33_000
