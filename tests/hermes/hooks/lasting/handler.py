"""A client, a task, a thread and a child that outlive the call which made them."""

import asyncio, subprocess, sys, threading, time

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")


STATE = {}


class Client:
    """Bound to the loop that it was made on, as HTTP clients are."""

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.queue = asyncio.Queue()


async def later():
    await asyncio.sleep(0.05)
    STATE["task"] = "done"


def tick():
    time.sleep(0.05)
    STATE["thread"] = "done"


async def handle(event_type, context):
    if event_type == "agent:start":
        STATE.clear()
        STATE["client"] = Client()
        STATE["kept"] = asyncio.create_task(later())
        threading.Thread(target=tick, daemon=True).start()
        STATE["child"] = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        return
    for _ in range(200):
        if "task" in STATE and "thread" in STATE:
            break
        await asyncio.sleep(0.01)
    alive = STATE["child"].poll() is None
    STATE["child"].kill()
    STATE["child"].wait()
    same = STATE["client"].loop is asyncio.get_running_loop()
    await asyncio.wait_for(STATE["client"].queue.put(1), 1)
    note("lasting", same, STATE.get("task"), STATE.get("thread"), alive)
