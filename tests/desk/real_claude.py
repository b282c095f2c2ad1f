"""Claude Code itself, at a fixed version, in a home of its own; its model is on loopback."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from gateway.config.home import get_process_environment

VERSION = "2.1.332"
PACKAGE = Path("node_modules", "@anthropic-ai", "claude-code-linux-x64", "claude")
LONGEST = 180.0
ALONE = ("unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "-")  # a network without any other host
MODEL = Path(__file__).with_name("stub_model.py")


def install_claude(folder: Path) -> Path | None:
    """Install it, and return its binary; None without npm, or where npm cannot reach its registry."""
    if shutil.which("npm") is None:
        return None
    folder.mkdir(parents=True)
    wanted = f"@anthropic-ai/claude-code@{VERSION}"
    done = subprocess.run(["npm", "i", "--no-audit", "--no-fund", "--ignore-scripts", wanted], cwd=folder, check=False)
    binary = folder / PACKAGE
    return binary if done.returncode == 0 and binary.exists() else None


class RealClaude:
    """One call of the program after another, each in the same project."""

    def __init__(self, binary: Path, home: Path) -> None:
        self.binary, self.home, self.project = binary, home, home / "project"
        self.project.mkdir()
        (home / ".claude").mkdir(exist_ok=True)

    def run(self, command: str, *options: str, is_alone: bool = True) -> str:
        """Have the model call Bash with this command, and return what the program printed."""
        environ = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.defpath)),
            "LANG": "C.UTF-8",
            "ANTHROPIC_API_KEY": "sk-ant-stub",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        words = [sys.executable, str(MODEL), command, "--", str(self.binary), "-p", "do it", *options]
        alone = [*ALONE] if is_alone and can_be_alone() else []
        done = subprocess.run(
            [*alone, *words],
            cwd=self.project,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        return done.stdout + done.stderr

    def add_permission(self, rule: str) -> None:
        """Let the program run what this rule names without a question of its own."""
        file = self.home / ".claude" / "settings.json"
        kept = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(kept | {"permissions": {"allow": [rule]}}))


def can_be_alone() -> bool:
    found = subprocess.run([*ALONE, "true"], capture_output=True, env=dict(get_process_environment()), check=False)
    return found.returncode == 0
