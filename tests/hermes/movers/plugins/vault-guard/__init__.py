"""Nothing that lies in the vault is read; which folder that is, the environment says."""

import json
import os
from pathlib import Path

try:
    from agent.secret_scope import get_secret
except Exception:
    def get_secret(name, default=None):
        return os.environ.get(name, default)


def _note(*line):
    seen = Path(os.environ["HERMES_HOME"]) / "seen"
    seen.mkdir(parents=True, exist_ok=True)
    with open(seen / "vault-guard.jsonl", "a") as out:
        out.write(json.dumps(line) + "\n")


def _guard(tool_name, args, task_id, **_):
    vault = get_secret("VAULT_FOLDER", "vault")
    path = str((args or {}).get("path", ""))
    if tool_name in ("read_file", "patch", "write_file") and path.split("/")[0] == vault:
        return {"action": "block", "message": f"{path} lies in the vault"}


def _after(tool_name="", args=None, result="", status="", error_type=None, **kwargs):
    _note(tool_name, status, error_type, bool(json.loads(result).get("error")))


def register(ctx):
    ctx.register_hook("pre_tool_call", _guard)
    ctx.register_hook("post_tool_call", _after)
