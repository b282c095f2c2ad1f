"""Claude Code, Codex and Gemini CLI themselves, at the versions of programs.json, each in a home of its own.

Their model is on loopback. To try a newer version, write it into programs.json.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config.home import get_process_environment
from gateway.testing.patience import wait_until
from tests.desk.desk_program import RECORDED
from tests.desk.screen import Screen

LONGEST = 180.0
ESCAPE = "Escape"
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
[projects."{project}"]
trust_level = "trusted"
[model_providers.stub]
name = "stub"
base_url = "http://127.0.0.1/v1"
wire_api = "responses"
env_key = "STUB_KEY"
"""
CLAUDE_STATE: dict[str, Any] = {
    "hasCompletedOnboarding": True,
    "theme": "dark",
    "customApiKeyResponses": {"approved": ["sk-ant-stub"], "rejected": []},
    "projects": {"{project}": {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
}
GEMINI_SETTINGS: dict[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"enableAutoUpdate": False, "disableUpdateNag": True},
    "privacy": {"usageStatisticsEnabled": False},
    "model": {"name": "gemini-2.5-flash"},
}


class Kind(NamedTuple):
    """How npm installs a program, and how it is started. `free`: the option by which it asks nothing itself.

    `screen`: how it is started on a screen; `dialog`: words of its own dialog there.
    """

    package: str
    file: str
    words: tuple[str, ...]
    environ: Mapping[str, str]
    free: tuple[str, ...] = ()
    settings: Mapping[str, str] = {}
    """Other files of its home."""
    screen: tuple[str, ...] = ()
    dialog: str = ""


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
        settings={".claude.json": json.dumps(CLAUDE_STATE)},
        screen=("--permission-mode", "default", "do it"),
        dialog="Do you want to proceed?",
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
        screen=(
            "--no-daemon",
            "--dangerously-bypass-hook-trust",
            *("-c", 'approval_policy="on-request"', "-c", 'sandbox_mode="read-only"'),
            *("-c", 'model_providers.stub.base_url="{model}/v1"'),
            "do it",
        ),
        dialog="Would you like to run the following command?",
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
    """Install it, and return its file; None without npm or tmux, or where npm cannot reach its registry."""
    if not all(map(shutil.which, ("npm", "tmux"))):
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
        self.write_settings(home)

    def write_settings(self, home: Path) -> None:
        """Write what the program needs in a home, without any hook."""
        for path, text in self.kind.settings.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text.replace("{project}", str(self.project)))

    def make_words(self, command: str, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, str(MODEL), command, "--", str(self.file), *words]

    def make_environ(self) -> dict[str, str]:
        path = os.pathsep.join((str(Path(shutil.which("node") or "").parent), os.defpath))
        return {**self.kind.environ, "HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8"}

    def run(self, command: str, *, is_free: bool = True, is_alone: bool = True, seconds: float = LONGEST) -> bool:
        """Have the model call the shell with this command; return False if the program had to be ended."""
        environ = self.make_environ()
        if not is_alone:  # no other host for it either, so that it waits for none
            environ |= {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
        alone = [*ALONE] if is_alone and can_be_alone() else []
        words = self.make_words(command, (*(self.kind.free if is_free else ()), *self.kind.words))
        with (
            self.find_output(command).open("wb") as output,
            subprocess.Popen(
                [*alone, *words],
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

    def run_on_screen(
        self,
        command: str,
        key: str = "",
        may_press: Callable[[], bool] = lambda: True,
        is_noted: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Run it on a screen, where it asks, and press this key at its own dialog; return False if that ended the turn.

        `is_noted`: what an Escape leads to has happened.
        """
        alone, has_pressed = [*ALONE] if can_be_alone() else [], False
        words = [*alone, *self.make_words(command, self.kind.screen)]
        with Screen(self.project, words, self.make_environ()) as screen:

            def is_over() -> bool:
                nonlocal has_pressed
                shown = screen.show()
                if shown:
                    self.find_output(command).write_text(shown)
                if key and self.kind.dialog in shown:
                    if may_press():  # again and again, since a dialog ignores keys that come too early
                        screen.press(key)
                        has_pressed = True
                    return False
                return not shown or (has_pressed and key == ESCAPE and is_noted())

            wait_until(is_over, what=f"the end of {command} on a screen")
            return not screen.show()

    def find_output(self, command: str) -> Path:
        return self.home / f"output-{hashlib.sha256(command.encode()).hexdigest()[:12]}"

    def read_output(self, command: str) -> str:
        """Return what the program wrote, or showed last, at the last call with this command."""
        return self.find_output(command).read_text(errors="replace")


@cache
def can_be_alone() -> bool:
    found = subprocess.run([*ALONE, "true"], capture_output=True, env=dict(get_process_environment()), check=False)
    return found.returncode == 0
