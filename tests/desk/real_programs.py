"""Claude Code, Codex and Gemini CLI themselves, at the versions of programs.json, each in a home of its own.

Their model is on loopback. To try a newer version, write it into programs.json.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config.home import get_process_environment
from tests.desk.desk_program import RECORDED

LONGEST = 180.0
ALONE = ("unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "-")  # a network without any other host
MODEL = Path(__file__).with_name("stub_model.py")
CODEX_SETTINGS = """
model = "gpt-5.2"
model_provider = "stub"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stub]
name = "stub"
base_url = "http://127.0.0.1/v1"
wire_api = "responses"
env_key = "STUB_KEY"
"""
GEMINI_SETTINGS: dict[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"enableAutoUpdate": False, "disableUpdateNag": True},
    "privacy": {"usageStatisticsEnabled": False},
    "model": {"name": "gemini-2.5-flash"},
}


class Kind(NamedTuple):
    """How npm installs a program, and how it is started. `free`: the option by which it asks nothing itself."""

    package: str
    file: str
    words: tuple[str, ...]
    environ: Mapping[str, str]
    free: tuple[str, ...] = ()
    settings: Mapping[str, str] = {}
    """Other files of its home."""


KINDS = {
    "claude": Kind(
        "@anthropic-ai/claude-code",
        "@anthropic-ai/claude-code-linux-x64/claude",
        ("-p", "do it"),
        {
            "ANTHROPIC_API_KEY": "sk-ant-stub",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
        ("--allowedTools=Bash",),
    ),
    "codex": Kind(
        "@openai/codex",
        "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        (
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-hook-trust",
            "-c",
            'model_providers.stub.base_url="{model}/v1"',
            "do it",
        ),
        {"STUB_KEY": "x"},
        settings={".codex/config.toml": CODEX_SETTINGS},
    ),
    "gemini": Kind(
        "@google/gemini-cli",
        ".bin/gemini",
        ("-p", "do it", "--approval-mode", "yolo"),
        {"GEMINI_API_KEY": "x"},
        settings={".gemini/settings.json": json.dumps(GEMINI_SETTINGS)},
    ),
}


def install_program(name: str, folder: Path) -> Path | None:
    """Install it, and return its file; None without npm, or where npm cannot reach its registry."""
    if shutil.which("npm") is None:
        return None
    folder.mkdir(parents=True)
    wanted = f"{KINDS[name].package}@{RECORDED[name]['version']}"
    words = ["npm", "i", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", wanted]
    done = subprocess.run(words, cwd=folder, check=False)
    file = folder / "node_modules" / KINDS[name].file
    return file if done.returncode == 0 and file.exists() else None


class RealProgram:
    """One call of a program after another, or several at once, each in the same project."""

    def __init__(self, name: str, file: Path, home: Path) -> None:
        self.kind, self.file, self.home, self.project = KINDS[name], file, home, home / "project"
        self.project.mkdir()
        self.output = home / "output"  # of the last call
        self.write_settings(home)

    def write_settings(self, home: Path) -> None:
        """Write what the program needs in a home, without any hook."""
        for path, text in self.kind.settings.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)

    def make_words(self, command: str, *, is_free: bool = True) -> list[str]:
        words = [*(self.kind.free if is_free else ()), *self.kind.words]
        return [sys.executable, str(MODEL), command, "--", str(self.file), *words]

    def run(self, command: str, *, is_free: bool = True, is_alone: bool = True, seconds: float = LONGEST) -> bool:
        """Have the model call the shell with this command; return False if the program had to be ended."""
        environ = {**self.kind.environ} | {
            "HOME": str(self.home),
            "PATH": os.pathsep.join((str(Path(shutil.which("node") or "").parent), os.defpath)),
            "LANG": "C.UTF-8",
        }
        if not is_alone:  # no other host for it either, so that it waits for none
            environ |= {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
        alone = [*ALONE] if is_alone and can_be_alone() else []
        output = self.output.open("wb")
        with (
            output,
            subprocess.Popen(
                [*alone, *self.make_words(command, is_free=is_free)],
                cwd=self.project,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            ) as started,
        ):
            try:
                started.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                return False
        return True

    def read_output(self) -> str:
        return self.output.read_text(errors="replace")


@cache
def can_be_alone() -> bool:
    found = subprocess.run([*ALONE, "true"], capture_output=True, env=dict(get_process_environment()), check=False)
    return found.returncode == 0
