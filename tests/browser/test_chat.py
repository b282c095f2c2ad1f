"""The page's chat in a real browser: one writes, sees the answer come, and finds it there again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from gateway.testing import GatewayProcess
from tests.browser.screen import PATIENCE, SCHEMES, WIDTHS, Screen, log_in, screens

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

TRICKS = """# Heading <script>document.title = "taken"</script>

A [good link](https://example.org/a), a [bad one](javascript:document.title=1), <img src=x onerror="alert(1)">, `<b>`,
**bold**, *soft*, ~~gone~~, a_name_with_lines, 2 * 3 * 4 and https://example.org/b?x=1.

```python
print("<script>")
```

1. one
2. two
   - three

> said

| a | b |
|---|---|
| 1 | **2** |

![picture](https://example.org/pixel.png) [data](data:text/html,x) \u202eturned\u202c
"""
SLOW = {"user": "slow", "answers": [{"chunks": [f"word{number} " for number in range(30)], "delay": "150ms"}]}
ASKS = {
    "user": "do it",
    "answers": [{"tool_calls": [{"name": "shell", "args": {"command": "echo <b>x</b>"}}]}, {"text": "Did."}],
}
SPEAKS = 'voice: {speak: {command: [flite, -voice, slt, -o, "{file}"]}}\n'
SCRIPT: tuple[dict[str, Any], ...] = (
    {"user": "tricks", "answers": [{"text": TRICKS}]},
    *[SLOW] * 4,
    *[ASKS] * 6,
    *({"user": "", "text": "I heard you."},) * 60,
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("talk") / "home") as gateway:
        gateway.script(*SCRIPT, settings=f"tools: {{shell: ask}}\n{SPEAKS}")
        gateway.start()
        yield gateway


@pytest.fixture
def screen(chromium: Browser, gateway: GatewayProcess) -> Iterator[Screen]:
    url, login = log_in(chromium, gateway)
    with screens(chromium, url, login) as screen:
        yield screen


def enter(screen: Screen, thread: str = "") -> None:
    screen.enter(f"chat/{thread}" if thread else "chat", "commands")


def write(screen: Screen, text: str) -> None:
    screen.page.get_by_label("Your message").fill(text)
    screen.page.get_by_role("button", name="Send", exact=True).click()


def answers(screen: Screen) -> Locator:
    return screen.page.locator(".log .said.agent")


def test_one_writes_sees_the_answer_and_finds_it_again(screen: Screen) -> None:
    enter(screen)
    write(screen, "good morning")
    expect(answers(screen)).to_contain_text("I heard you.", timeout=PATIENCE)
    screen.page.reload()
    expect(answers(screen)).to_contain_text("I heard you.", timeout=PATIENCE)
    expect(screen.page.locator(".log .said")).to_have_count(2)
    assert screen.faults == []


def test_nothing_in_an_answer_acts(screen: Screen) -> None:
    enter(screen, "c" + "1" * 15)
    write(screen, "tricks")
    expect(answers(screen)).to_contain_text("said", timeout=PATIENCE)
    answer = answers(screen)
    assert answer.locator("script, img, b").count() == 0
    hrefs = [link.get_attribute("href") for link in answer.locator("a").all()]
    assert hrefs == ["https://example.org/a", "https://example.org/b?x=1", "https://example.org/pixel.png"]
    assert {link.get_attribute("rel") for link in answer.locator("a").all()} == {"noopener noreferrer nofollow"}
    expect(answer.locator("h3.x, .markdown h3")).to_contain_text('Heading <script>document.title = "taken"</script>')
    expect(answer.locator("pre code")).to_have_text('print("<script>")')
    expect(answer.locator("strong")).to_have_text(["bold", "2"])
    expect(answer.locator("ol > li")).to_have_count(2)
    expect(answer.locator("ol ul li")).to_have_text("three")
    expect(answer.locator("td")).to_have_text(["1", "2"])
    expect(answer).to_contain_text("a_name_with_lines, 2 * 3 * 4")
    expect(answer).to_contain_text("\\u202eturned")
    expect(screen.page).to_have_title("Chat · hermes-gateway")
    for width, viewport in WIDTHS.items():
        screen.page.set_viewport_size(viewport)  # type: ignore[arg-type]
        for scheme in SCHEMES:
            screen.page.emulate_media(color_scheme=scheme)
            screen.keep_picture(f"chat-answer-{width}-{scheme}")
            assert screen.list_cut() == []
            assert screen.list_barriers() == []
    assert screen.faults == []


HARD = r"""() => {
    const texts = [
        '['.repeat(90000), '[a]('.repeat(20000), '*a '.repeat(30000), '**a'.repeat(30000), '*_'.repeat(45000),
        '> '.repeat(45000) + 'x', '- '.repeat(45000) + 'x', 'http://a'.repeat(10000), '_a'.repeat(45000),
        '[x]'.repeat(30000) + '](', '# a' + ' '.repeat(90000) + 'b', 'http://a' + '.'.repeat(90000) + 'b',
        '|' + '\\|'.repeat(30000) + '|\n|-|', '`'.repeat(45000) + 'a' + '``'.repeat(20000), 'a\n'.repeat(500000),
    ]
    return import('/static/markdown.js').then(({ drawMarkdown }) => texts.map(text => {
        const began = performance.now()
        drawMarkdown(text)
        return [text.slice(0, 12), performance.now() - began]
    }))
}"""


def test_no_answer_takes_long_to_be_drawn(screen: Screen) -> None:
    enter(screen, "c" + "7" * 15)
    assert [text for text, took in screen.page.evaluate(HARD) if took > 3000] == []


def test_an_answer_grows_is_there_whole_after_a_reload_in_its_middle_and_can_be_stopped(screen: Screen) -> None:
    enter(screen, "c" + "2" * 15)
    write(screen, "slow")
    expect(screen.page.locator(".growing")).to_contain_text("word3", timeout=PATIENCE)
    screen.page.reload()
    expect(screen.page.locator(".growing")).to_contain_text("word0 word1 word2 word3", timeout=PATIENCE)
    screen.page.get_by_role("button", name="Stop").click()
    expect(screen.page.locator(".log")).to_contain_text("Stopped.", timeout=PATIENCE)
    expect(screen.page.locator(".growing")).to_have_count(0, timeout=PATIENCE)
    expect(screen.page.get_by_role("button", name="Stop")).to_be_hidden(timeout=PATIENCE)


def test_a_question_that_one_tab_answers_is_answered_in_the_other(screen: Screen) -> None:
    enter(screen, "c" + "3" * 15)
    other = screen.page.context.new_page()
    other.goto(screen.page.url)
    write(screen, "do it")
    for page in (screen.page, other):
        expect(page.locator(".literal")).to_contain_text(["echo <b>x</b>"], timeout=PATIENCE)
    screen.keep_picture("chat-question")
    assert screen.list_barriers() == []
    other.get_by_role("button", name="Yes").click()
    for page in (screen.page, other):
        expect(page.locator(".log")).to_contain_text("Did.", timeout=PATIENCE)
        expect(page.locator(".answers button")).to_have_count(0, timeout=PATIENCE)
        expect(page.locator(".log")).to_contain_text("Allowed by")


def test_a_command_is_chosen_by_the_keyboard(screen: Screen) -> None:
    enter(screen, "c" + "4" * 15)
    field = screen.page.get_by_label("Your message")
    field.press_sequentially("/who")
    expect(screen.page.get_by_role("option")).to_contain_text(["/whoami"], timeout=PATIENCE)
    field.press("Tab")
    expect(field).to_have_value("/whoami")
    field.press("Enter")
    expect(answers(screen)).to_contain_text("web user owner, owner", timeout=PATIENCE)
    screen.page.reload()


def test_a_file_goes_up_and_what_was_written_is_changed(screen: Screen, tmp_path: Path) -> None:
    enter(screen, "c" + "5" * 15)
    letter = tmp_path / "letter <b>.txt"
    letter.write_text("a letter")
    screen.page.get_by_label("Files to send").set_input_files(letter)
    expect(screen.page.locator(".composer .files")).to_contain_text("letter", timeout=PATIENCE)
    write(screen, "what is this?")
    link = screen.page.locator(".log .files a")
    expect(link).to_contain_text("letter <b>.txt", timeout=PATIENCE)
    with screen.page.expect_download() as saved:
        link.click()
    assert Path(saved.value.path()).read_text() == "a letter"
    expect(answers(screen)).to_have_count(1, timeout=PATIENCE)
    screen.page.get_by_role("button", name="change").click()
    write(screen, "what was this?")
    expect(answers(screen)).to_have_count(2, timeout=PATIENCE)
    expect(screen.page.locator(".log .said.user")).to_have_count(1)
    expect(screen.page.locator(".log .said.user")).to_contain_text("what was this?")


def test_what_is_sent_before_its_files_are_here_waits_for_them(screen: Screen, tmp_path: Path) -> None:
    enter(screen, "c" + "a" * 15)
    letters = [tmp_path / f"{number}.txt" for number in (1, 2)]
    for letter in letters:
        letter.write_text("a letter")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    screen.page.route("**/chat/file?id=*", hold)
    screen.page.get_by_label("Files to send").set_input_files(letters)
    for count in range(2):
        write(screen, "what are these?")
        expect(screen.page.locator(".composer")).to_contain_text("sent as soon as its files are here")
        expect(screen.page.locator(".log .said")).to_have_count(0)
        expect(screen.page.locator(".composer li", has_text="…")).to_have_count(2 - count)
        while len(held) <= count:
            screen.page.wait_for_timeout(10)
        held[count].continue_()
    expect(screen.page.locator(".log .files a")).to_have_count(2, timeout=PATIENCE)
    expect(answers(screen)).to_have_count(1, timeout=PATIENCE)
    expect(screen.page.locator(".composer li")).to_have_count(0)


def test_an_answer_that_is_spoken_too_is_played(screen: Screen) -> None:
    enter(screen, "c" + "8" * 15)
    write(screen, "/voice on")
    expect(answers(screen)).to_contain_text("My answers are spoken too", timeout=PATIENCE)
    write(screen, "hello")
    player = screen.page.locator(".log .said.agent audio")
    expect(player).to_have_count(1, timeout=PATIENCE)
    expect(answers(screen).nth(1)).to_contain_text("I heard you.")
    seconds = player.evaluate("""
        player => new Promise((told, failed) => {
            player.addEventListener('ended', () => told(player.currentTime))
            player.addEventListener('error', () => failed(player.error.message))
            player.muted = true
            player.play().catch(failed)
        })""")
    assert 0.3 < seconds < 5


def test_what_is_written_while_the_gateway_is_away_is_taken_when_it_is_back(
    screen: Screen, gateway: GatewayProcess
) -> None:
    enter(screen, "c" + "6" * 15)
    port = screen.page.url.split(":")[2].partition("/")[0]
    gateway.kill()
    write(screen, "are you there?")
    expect(screen.page.locator(".sending")).to_contain_text("are you there?")
    gateway.start(environ={"GATEWAY_WEB_LISTEN": f"127.0.0.1:{port}"})
    expect(answers(screen)).to_contain_text("I heard you.", timeout=PATIENCE)
    expect(screen.page.locator(".log .said")).to_have_count(2)


def test_on_a_phone_the_whole_of_it_is_on_the_screen(screen: Screen) -> None:
    """Nobody scrolls to where they write."""
    screen.page.set_viewport_size(WIDTHS["phone"])  # type: ignore[arg-type]
    enter(screen, "c" + "7" * 15)
    for found in (screen.room.get_by_role("textbox"), screen.room.get_by_role("button", name="Send", exact=True)):
        expect(found).to_be_in_viewport(ratio=1, timeout=PATIENCE)
    assert screen.page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")
