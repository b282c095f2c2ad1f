"""A queue and one thread of its own, made at import; `requests`-like, all of it synchronous."""

import os
import queue
import threading
from pathlib import Path

work = queue.Queue()


def write_diary():
    while True:
        line = work.get()
        with open(Path(os.environ["HERMES_HOME"]) / "diary.txt", "a") as file:
            file.write(line + "\n")


threading.Thread(target=write_diary, daemon=True).start()


def handle(event_type, context):
    work.put(f"{event_type} {context.get('message', context.get('command'))}")
