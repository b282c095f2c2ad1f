"""Installed with pip; found by its entry point."""

from moonlight_plugin.phases import Phases


def register(ctx):
    phases = Phases()
    ctx.register_hook("pre_llm_call", phases.before)
    ctx.register_hook("post_llm_call", phases.after)
    ctx.register_command("moonlight", lambda raw_args: f"waning {raw_args}".strip(), description="the moon's light")
