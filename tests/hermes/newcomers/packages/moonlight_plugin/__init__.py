"""Installed with pip; found by its entry point."""

import os
import subprocess

from moonlight_plugin.phases import Phases


def register(ctx):
    phases = Phases()
    ctx.register_hook("pre_llm_call", phases.before)
    ctx.register_hook("post_llm_call", phases.after)
    ctx.register_command("moonlight", lambda raw_args: f"waning {raw_args}".strip(), description="the moon's light")
    ctx.register_command("desktop", lambda raw_args: str(_find_desktop()), description="what it could ring")


def _find_desktop():
    lines = subprocess.run(["env"], capture_output=True, text=True).stdout.splitlines()
    names = ("DISPLAY", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR")
    return [name for name in names if name in os.environ or any(line.startswith(f"{name}=") for line in lines)]
