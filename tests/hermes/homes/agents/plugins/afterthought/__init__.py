"""An agent in a thread after each turn, whose own turn is one more turn: under Hermes that never ends."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

pool = ThreadPoolExecutor(max_workers=1)


def think(text):
    from hermes_constants import get_hermes_home
    from run_agent import AIAgent

    with (Path(get_hermes_home()) / "thoughts.txt").open("a") as file:
        file.write(f"{text}\n")
    AIAgent(quiet_mode=True).chat("think again")


def after(user_message, assistant_response, **_):
    if user_message.startswith("in a pool"):
        pool.submit(think, user_message)
    else:
        threading.Thread(target=think, args=(user_message,), daemon=True).start()


def register(ctx):
    ctx.register_hook("post_llm_call", after)
