"""The page's chat on the daemon: what is said is taken once and answered once, and shown without gap or double."""

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from gateway.adapters.page.chat import LARGEST_FILE, MOST_KEPT, MOST_KEPT_FILES
from gateway.testing import GatewayProcess
from tests.web.chats import NUMBERS, ChatVisitor, is_answer
from tests.web.logged_in import log_in
from tests.web.visits import Visit, connect, read_all, read_answer

pytestmark = pytest.mark.process

SLOW = {"user": "slow", "answers": [{"chunks": [f"word{number} " for number in range(12)], "delay": "100ms"}]}
SCRIPT: tuple[dict[str, Any], ...] = (*[SLOW] * 8, *({"user": "", "text": "I heard you."},) * 200)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("chat") / "home") as gateway:
        gateway.script(*SCRIPT)
        gateway.start()
        yield gateway


def enter(gateway: GatewayProcess) -> ChatVisitor:
    """As the owner, by a link from the terminal."""
    browser = log_in(gateway)
    return ChatVisitor(browser.url, browser.token)


@pytest.fixture(scope="module")
def owner(gateway: GatewayProcess) -> ChatVisitor:
    return enter(gateway)


def test_what_is_said_is_answered_and_is_there_again_for_whoever_comes_later(owner: ChatVisitor) -> None:
    number = owner.write("good morning")
    first = owner.see("I heard you.")
    assert [(one.data["by"], one.data["text"]) for one in first] == [
        ("person", "good morning"),
        ("agent", "I heard you."),
    ]
    assert (first[0].data["id"], first[1].data["reply_to"]) == (number, number)
    assert owner.see("I heard you.") == first
    behind = owner.hear(lambda one: one.kind == "shown", seen=first[0].number)
    assert [one for one in behind if one.kind == "shown"] == first[1:]


def test_an_answer_is_told_while_it_is_written_and_whole_to_whoever_comes_in_its_middle(owner: ChatVisitor) -> None:
    thread = "c" + "1" * 15
    owner.write("slow", thread=thread)
    early = owner.hear(lambda one: one.kind == "piece" and "word3" in one.data["text"], thread=thread)
    assert not any(map(is_answer, early))
    late = owner.hear(is_answer, thread=thread)
    pieces = [one.data for one in late if one.kind == "piece"]
    told = ""
    for piece in pieces:
        assert piece["at"] in (0, len(told))
        told = told[: piece["at"]] + piece["text"]
    assert (pieces[0]["at"], "word0 word1 word2 word3" in pieces[0]["text"]) == (0, True)
    assert late[-1].data["text"].strip().startswith(told.strip()), "the last piece may come behind the answer"


def test_fifty_messages_at_once_each_twice_are_fifty_messages_each_answered_once(owner: ChatVisitor) -> None:
    def say(number: int) -> int:
        said = {"id": f"storm-{number:04}", "text": f"number {number}", "thread": f"c{number % 5:015x}"}
        return owner.post("/chat/say", json.dumps(said).encode()).status

    with ThreadPoolExecutor(20) as threads:
        assert set(threads.map(say, [*range(50), *range(50)])) == {200}
    for chat in range(5):
        thread = f"c{chat:015x}"
        shown = [
            one for one in owner.hear(lambda one: one == (0, "state", "idle"), thread=thread) if one.kind == "shown"
        ]
        said = [one.data["text"] for one in shown if one.data["by"] == "person"]
        assert sorted(said) == sorted(f"number {number}" for number in range(50) if number % 5 == chat)


def test_an_answer_that_a_crash_cuts_off_comes_whole_and_once_however_often_it_was_asked_for(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT)
        gateway.start()
        browser = log_in(gateway)
        visitor = ChatVisitor(browser.url, browser.token)
        said = {"id": "message-kept", "text": "slow"}
        assert visitor.post("/chat/say", json.dumps(said).encode()).status == 200
        heard = visitor.hear(lambda one: one.kind == "piece" and "word3" in one.data["text"])
        seen = max(one.number for one in heard)
        gateway.kill()
        gateway.start()
        visitor.url = str(gateway.call("status")["web"]["url"])
        assert visitor.post("/chat/say", json.dumps(said).encode()).status == 200
        behind = [one for one in visitor.hear(is_answer, seen=seen) if one.kind == "shown"]
        assert [one.data["text"].split()[:2] for one in behind] == [["word0", "word1"]]
        assert behind[0].data["text"].split()[-1] == "word11"
        assert visitor.post("/chat/say", json.dumps(said).encode()).status == 200
        visitor.write("hello")
        texts = [one.data["text"].split()[0] for one in visitor.see("I heard you.")]
        assert texts == ["slow", "word0", "hello", "I"]


def test_a_name_of_a_file_is_no_path_and_it_is_fetched_by_its_place_alone(owner: ChatVisitor) -> None:
    thread = "c" + "3" * 15
    for name in ("../../../etc/passwd", "..%2f..%2fx", "a\x00b", "con\r\nX-Evil: 1", "x" * 900, '"; filename=y'):
        query = urlencode({"id": f"file-{next(NUMBERS):06}", "name": name, "type": "text/html"})
        answer = owner.post(f"/chat/file?{query}", b"<script>alert(1)</script>", "application/octet-stream")
        assert answer.status == 200, answer
        kept = json.loads(answer.body)
        assert re.fullmatch(r"[0-9a-f]{24}(\.[a-z0-9]{1,8})?", kept["file"])
        number = owner.write("look", thread=thread, files=[kept])
        about = urlencode({"thread": thread, "message": number, "number": 0})
        sent = owner.get(f"/chat/file?{about}")
        assert (sent.status, sent.body) == (200, b"<script>alert(1)</script>")
        assert sent.headers["content-type"] == "application/octet-stream"
        assert sent.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert "x-evil" not in sent.headers
        assert owner.get(f"/chat/file?{about}&path=/etc/passwd").status == 400
        assert owner.get(f"/chat/file?{about.replace('number=0', 'number=1')}").status == 404
    query = urlencode({"id": "file-large", "name": "large"})
    assert owner.post(f"/chat/file?{query}", b"x" * 25_000_001, "application/octet-stream").status == 413


def test_one_person_has_so_much_lying_here_and_is_told_what_to_do(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("access: {rate: {owner: 6}}\n")
        gateway.start()
        owner = enter(gateway)

        def send(number: str) -> Visit:
            query = urlencode({"id": f"file-{number}", "name": "plan.txt"})
            return owner.post(f"/chat/file?{query}", b"a plan", "application/octet-stream")

        first = send("000001")
        assert first.status == 200
        (kept,) = (gateway.home.files / "web" / "owner").iterdir()
        large = kept.with_name("0" * 24)
        with large.open("wb") as file:
            file.truncate(MOST_KEPT - LARGEST_FILE)
        refused = send("000002")
        assert (refused.status, b"14 days" in refused.body) == (413, True), refused
        assert send("000001").status == 200, "what is sent again takes no more room"
        assert [*kept.parent.iterdir()] in ([kept, large], [large, kept])
        large.unlink()
        assert send("000002").status == 200
        for number in range(MOST_KEPT_FILES):
            kept.with_name(f"{number:024x}").touch()
        assert send("000003").status == 413
        answers = [send(f"{number:06}") for number in range(4, 12)]
        late = next(one for one in answers if one.status != 413)
        assert (late.status, late.headers["retry-after"]) == (429, "60")


def test_many_large_files_at_once_lie_on_the_disk_and_not_in_the_memory(
    gateway: GatewayProcess, owner: ChatVisitor
) -> None:
    part, parts, count = b"x" * 1_000_000, 20, 12
    all_sent = threading.Barrier(count + 1, timeout=300)

    def send(number: int) -> int:
        head = owner.make_post(f"/chat/file?id=file-many-{number:03}&name=many.bin", len(part) * parts + 1)
        with connect(owner.url) as line:
            line.settimeout(None)
            line.sendall(head)
            for _ in range(parts):
                line.sendall(part)
            all_sent.wait()  # all of them are in by now but for their ends
            all_sent.wait()
            line.sendall(b"!")
            return read_answer(read_all(line)).status

    before = memory_of(gateway)
    with ThreadPoolExecutor(count) as pool:
        answers = [pool.submit(send, number) for number in range(count)]
        all_sent.wait()
        held = memory_of(gateway) - before
        all_sent.wait()
        assert [one.result() for one in answers] == [200] * count
    assert held < 100_000_000  # of 240 MB
    sizes = [one.stat().st_size for one in gateway.home.files.rglob("*.bin")]
    assert sizes.count(len(part) * parts + 1) == count


def test_of_a_file_whose_sender_leaves_nothing_stays(gateway: GatewayProcess, owner: ChatVisitor) -> None:
    with connect(owner.url) as line:
        line.sendall(owner.make_post("/chat/file?id=file-left-01&name=left.bin", 5_000_000) + b"x" * 1_000_000)
        gateway.until(lambda: any(gateway.home.files.rglob(".*.new")))
    gateway.until(lambda: not any(gateway.home.files.rglob(".*.new")))


def memory_of(gateway: GatewayProcess) -> int:
    """Bytes of the daemon that are in memory now."""
    assert gateway.process
    (kilobytes,) = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{gateway.process.pid}/status").read_text())
    return int(kilobytes) * 1024


def test_what_is_no_message_is_refused_and_nothing_of_it_is_kept(owner: ChatVisitor) -> None:
    whole = {"id": "message-x1", "text": "hello"}
    refused = (
        ({**whole, "id": "../../x"}, 400),
        ({**whole, "id": "message-x1\n"}, 400),
        ({**whole, "thread": "main"}, 400),
        ({**whole, "thread": "c" + "2" * 15 + "\n"}, 400),
        ({**whole, "path": "/etc/passwd"}, 400),
        ({**whole, "files": [{"file": "../../etc/passwd"}]}, 400),
        ({**whole, "files": [{"file": "0" * 24}]}, 409),
        ({**whole, "text": " "}, 409),
        ({**whole, "text": "x" * 1_000_001}, 400),
        ({**whole, "text": "x" * 5_000_000}, 413),
    )
    for said, status in refused:
        assert owner.post("/chat/say", json.dumps(said).encode()).status == status, said
    body = json.dumps(whole).encode()
    assert owner.post("/chat/say", body, "text/plain").status == 415
    assert owner.post("/chat/say", body, **{"X-Token": "0" * 64}).status == 403
    assert owner.post("/chat/say", b"[" * 100_000).status == 400
    assert ChatVisitor(owner.url, "").post("/chat/say", body, Cookie=f"hermes-gateway={owner.token}").status == 403
    assert not [one for one in owner.see("I heard you.") if one.data["id"] == "message-x1"]


def test_the_largest_message_is_one(owner: ChatVisitor) -> None:
    thread = "c" + "2" * 15
    owner.write("ä" * 999_990, thread=thread)
    (said, _) = owner.see("I heard you.", thread)
    assert len(said.data["text"]) == 999_990
