"""Two versions of the gateway beside each other on one journal: each does what it can read."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import msgspec

import gateway
from gateway.cluster.nats.engine import open_nats
from gateway.config.home import get_process_environment
from gateway.engine.interface import Engine
from gateway.lanes.lanes import make_inbound_put
from gateway.records import records, subjects
from tests.engine.nats_servers import run_servers
from tests.spine import key, message, until

ROOT = Path(gateway.__file__).parents[1]
NODE = Path(__file__).with_name("versioned_node.py")
LIVE_NODE = Path(__file__).with_name("live_node.py")
CHATS, ROUNDS = 8, 4
NEW_KIND = '''

class MoodNoted(OpenTurnRecord, tag="mood", frozen=True, kw_only=True):
    """What the next version knows."""

    v: int = 2
    mood: str
'''


def make_next_version(folder: Path) -> Path:
    """The package as it will be: a version on, with a kind of record more."""
    shutil.copytree(ROOT / "gateway", folder / "gateway", ignore=shutil.ignore_patterns("__pycache__"))
    house = folder / "gateway"
    steps, kinds = house / "messages" / "steps.py", house / "records" / "records.py"
    for file, constant in ((steps, "VERSION"), (house / "engine" / "live_messages.py", "LIVE_VERSION")):
        raised, count = re.subn(rf"^{constant} = 1\b", f"{constant} = 2", file.read_text(), flags=re.MULTILINE)
        assert count == 1
        file.write_text(raised)
    before, mark, after = kinds.read_text().partition("\n\ndef _find_kinds")
    kinds.write_text(before + NEW_KIND + mark + after)
    return folder


@contextmanager
def run_node(path: Path, url: str, name: str, log: Path, program: Path = NODE) -> Iterator[subprocess.Popen[str]]:
    environ = {**get_process_environment(), "PYTHONPATH": f"{path}:{ROOT}"}
    with log.open("w") as errors:
        node = subprocess.Popen(
            [sys.executable, program, url, name],
            env=environ,
            cwd=log.parent,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            assert node.stdout
            assert node.stdout.readline() == "ready\n", log.read_text()
            yield node
        finally:
            node.kill()
            node.wait()


def stop(node: subprocess.Popen[str]) -> str:
    """Stop the node, and return the messages that it left to others."""
    left, _ = node.communicate("end\n")
    return left.strip()


async def say(engine: Engine, version: int) -> list[str]:
    """Something in each chat, taken by a gateway of that version."""
    said = list[str]()
    for chat in range(CHATS):
        text = f"{chat}.{len(said)}.{anyio.current_time()}"
        put = make_inbound_put(message(text, str(chat)), key(str(chat)), "", 0.0)
        inbound = msgspec.structs.replace(records.decode(put.data), v=version)
        await engine.append(msgspec.structs.replace(put, data=records.encode(inbound)))
        said.append(text)
    return said


async def read_answers(engine: Engine) -> list[str]:
    pattern, answers = subjects.OUT_SUBJECTS, list[str]()
    async for _, owed in records.read_all(engine, pattern, records.OwedReply):
        answers.append(owed.reply.text)
    return answers


async def test_each_message_is_answered_once_by_a_gateway_that_can_read_its_conversation(tmp_path: Path) -> None:
    newer = make_next_version(tmp_path / "next")
    with run_servers(tmp_path / "nats", 1) as servers:
        url = f"{servers[0].url}/versions"
        async with await open_nats(url) as engine:
            said = list[str]()
            with (
                run_node(ROOT, url, "older", tmp_path / "older.log") as older,
                run_node(newer, url, "newer", tmp_path / "newer.log") as later,
            ):
                for round_ in range(ROUNDS):
                    said += await say(engine, 2 if round_ == ROUNDS - 1 else 1)

                    async def are_answered() -> bool:
                        answers = " ".join(await read_answers(engine))
                        return all(text in answers for text in said)  # noqa: B023 - it is waited for at once

                    await until(are_answered, limit=90)
                left = await anyio.to_thread.run_sync(stop, older)
                assert "left to a later version" in left
                assert "upgrade hermes-gateway" in left
                assert await anyio.to_thread.run_sync(stop, later) == ""
        assert older.returncode == later.returncode == 0
        async with await open_nats(url) as engine:
            answers = [answer.partition(": ") for answer in await read_answers(engine)]
            texts = [text for _, _, words in answers for text in words.split(" + ")]
            assert sorted(texts) == sorted(said)
            for chat in range(CHATS):
                assert [text for text in texts if text.startswith(f"{chat}.")] == said[chat::CHATS]
            assert {node for node, _, _ in answers} == {"older", "newer"}
            assert await engine.depth("turns") == 0
    words = (tmp_path / "older.log").read_text()
    assert words.count("WARNING") == 1, words
    assert "Traceback" not in words
    assert not (tmp_path / "newer.log").read_text()


async def test_what_a_later_version_says_is_left_and_refused_and_what_both_know_is_heard(tmp_path: Path) -> None:
    newer = make_next_version(tmp_path / "next")
    log = tmp_path / "newer.log"
    with run_servers(tmp_path / "nats", 1) as servers:
        url = f"{servers[0].url}/versions"
        async with await open_nats(url) as engine:
            heard, asked = await engine.tail("rt.ctl.*"), list[bytes]()

            async def answer(data: bytes) -> bytes:
                asked.append(data)
                return b"yes"

            await engine.serve("rt.node.older", answer)
            with run_node(newer, url, "newer", log, LIVE_NODE) as node:
                told = await anyio.to_thread.run_sync(lambda: node.communicate("go\n")[0])
            assert told.splitlines() == ["refused: reads up to 1: upgrade hermes-gateway", "yes"], log.read_text()
            assert (await heard.__anext__()).data == b"what both know"
            assert asked == [b"what both know"]
            (warning,) = (await engine.health()).warnings
            assert "2 were left to a later version of the gateway" in warning
