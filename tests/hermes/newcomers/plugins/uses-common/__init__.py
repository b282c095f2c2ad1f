"""Watches turns."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.lines import write  # noqa: E402


class Observer:
    def __init__(self):
        self.turns = 0

    def before(self, user_message, is_first_turn, **_):
        self.turns += 1
        write("uses-common", "pre_llm_call", self.turns, user_message, is_first_turn)

    def after(self, assistant_response, **_):
        write("uses-common", "post_llm_call", self.turns, assistant_response)


def register(ctx):
    observer = Observer()
    ctx.register_hook("pre_llm_call", observer.before)
    ctx.register_hook("post_llm_call", observer.after)
