"""Lets the agent carry out BOOT.md when the gateway has started, in a session of its own, and tells the home channel.

When it began is written down before it begins, so that no loop of restarts gets around the interval. A run that the
gateway's end cut off is begun anew at the next start, once the interval is over, and given up after some attempts. What
came of each run is kept too: `hermes-gateway hooks info boot-md` shows it, and `hooks test boot-md` what would be done.
"""

import asyncio
import hashlib
import logging
import os
import time
import unicodedata
from pathlib import Path

KEPT = 20  # runs
LONGEST = 100_000  # characters of BOOT.md
SHOWN = 200
LACKING = "Add to config.yaml: "
SILENT = {"[SILENT]", "SILENT", "NO_REPLY", "NO REPLY", "[静默]", "静默", "[沉默]", "沉默", "无需回复"}
TASK = """\
The gateway has just started. Below is BOOT.md, which the owner of this machine wrote for this moment: carry it out.
Nobody is there to answer questions. Your answer is sent to the owner; if there is nothing that they need to know,
answer [SILENT] and nothing else.

{}"""

log = logging.getLogger("gateway.hooks.boot-md")


async def handle(event_type, context):
    store, options = context.gateway.store, context.options
    if options["may"] or options["read"]:
        log.info("BOOT.md may write to %s, and read %s", *(", ".join(options[one]) or "-" for one in ("may", "read")))
    path, last = Path((await context.gateway.facts())["home"]) / "BOOT.md", await store.get("last", {})
    attempts = last.pop("attempts", 0)  # stands there from a run's beginning to its end
    if not read(path) or (attempts and not await can_make_up(store, options, last, attempts)):
        return
    text, begun = read(path), time.time()
    digest = hashlib.sha256(text.encode()).hexdigest()
    why = "" if attempts else why_not(options, last, begun, digest)
    if why:
        log.info("BOOT.md is not carried out: %s", why)
        await note(store, begun, "skipped", why)
        return
    await store.set("last", {**last, "began": begun, "attempts": attempts + 1})
    session = f"boot-md-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(begun))}"
    done = await context.gateway.submit(TASK.format(text), session=session, wait=options["time_limit"])
    seconds, (reply, *lacking) = time.time() - begun, split_lacking(done["reply"])
    shown = " ".join([" ".join(reply.split())[:SHOWN], *lacking])  # a line of the log is one line
    if done["status"] == "timeout" and seconds < options["time_limit"]:
        return  # the gateway stops, and its next start finds a run that has no end
    if done["status"] != "ok":
        await store.set("last", {**last, "began": begun})
        log.warning("BOOT.md: %s after %.1f s: %s", done["status"], seconds, done["error"] or shown)
        await note(store, begun, done["status"], done["error"] or shown, seconds)
        return
    await store.set("last", {"began": begun, "done": digest})
    words = [*([] if is_silent(reply) else [reply]), *lacking]
    told = await tell(context.gateway, options["deliver"], "\n\n".join(words)) if words else "silent"
    log.info("BOOT.md was carried out in %.1f s (%s): %s", seconds, told, shown)
    await note(store, begun, "ok", f"{told}: {shown}", seconds)


async def can_make_up(store, options, last, attempts):
    """Tell of the run that was cut off, and wait until it may begin anew."""
    what = f"the gateway ended in the middle of it (attempt {attempts} of {options['attempts']:g})"
    if not last.pop("told", False):  # once, however often the gateway is started meanwhile
        log.warning("BOOT.md: at the run before, %s", what)
        await note(store, last["began"], "cut off", what)
        await store.set("last", {**last, "attempts": attempts, "told": True})
    if attempts >= options["attempts"]:
        log.warning("BOOT.md is given up until the next start: look at what it asks for")
        await store.set("last", last)
        await note(store, time.time(), "given up", "it is carried out again at the next start")
        return False
    since = time.time() - last["began"]
    if 0 <= since < options["min_interval"]:
        log.info("BOOT.md is begun anew in %.0f s", options["min_interval"] - since)
        await asyncio.sleep(options["min_interval"] - since)
    return True


def read(path):
    try:
        with open(  # at once: a named pipe would hold the gateway up
            path, encoding="utf-8", errors="replace", opener=lambda at, flags: os.open(at, flags | os.O_NONBLOCK)
        ) as file:
            text = file.read(LONGEST + 1).strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        log.warning("BOOT.md cannot be read: %s", error.strerror)
        return ""
    if len(text) > LONGEST:
        log.warning("BOOT.md has more than %d characters; the rest is left out", LONGEST)
    return text[:LONGEST]


def why_not(options, last, now, digest):
    since = now - last.get("began", 0)
    if 0 <= since < options["min_interval"]:  # a clock that was set back does not hold it up for ever
        return f"it was begun {since:.0f} s ago, and min_interval is {options['min_interval']:g} s"
    if options["policy"] == "once-per-change" and last.get("done") == digest:
        return "it was carried out before as it is, and the policy is once-per-change"
    return ""


def split_lacking(reply):
    """Return the answer, and the gateway's line on what the run was not allowed to do."""
    answer, mark, rest = reply.partition(LACKING)
    line, _, more = rest.partition("\n")
    return [(answer + more).strip(), *([mark + line] if line else [])]


def is_silent(reply):
    words = " ".join(reply.upper().split())
    if "[SILENT]" in words:  # also behind a sentence
        return True
    while words and words[0] not in "[]" and unicodedata.category(words[0]).startswith("P"):
        words = words[1:]
    while words and words[-1] not in "[]" and unicodedata.category(words[-1]).startswith("P"):
        words = words[:-1]
    return not words or words in SILENT


async def tell(gateway, to, reply):
    if not to:
        return "told nobody"
    try:
        sent = await gateway.send(to, reply)
    except Exception as error:  # noqa: BLE001 - the answer stays in its session and in the log
        return f"told nobody, {error}"
    return f"sent to {sent['platform']}:{sent['chat_id']}"


async def note(store, begun, status, what, seconds=0.0):
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begun))
    runs = await store.get("runs", [])
    await store.set("runs", [*runs, f"{at}  {status}, {seconds:.1f} s  {what}"][-KEPT:])
