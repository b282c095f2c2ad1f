"""What a handler's source shows of its shape, and what it leaves open."""

import pytest

from gateway.hooks.folders.handler_check import check_handler


def findings(source: str) -> list[str]:
    return [str(finding) for finding in check_handler("a/handler.py", source.encode())]


@pytest.mark.parametrize(
    "source",
    [
        "def handle(event_type, context): ...",
        "async def handle(event_type, context, more=None): ...",
        "def handle(*args): ...",
        "def handle(event_type, /, context, *, note=1): ...",
        "@decorated\ndef handle(): ...",
        "handle = print",
        "from elsewhere import handle",
        "from elsewhere import work as handle",
        "from elsewhere import *",
        "from gateway.hooks import on\n\n\n@on('tool:before')\ndef guard(context): ...",
        "import gateway.hooks as h\n\n\n@h.on('tool:before')\ndef guard(context): ...",
        "if True:\n    def handle(event_type, context): ...",
        "try:\n    from fast import handle\nexcept ImportError:\n    def handle(e, c): ...",
        "globals()['han' + 'dle'] = print",
        "def handle(): ...\n\n\ndef handle(event_type, context): ...",
        "x = " + "-" * 5000 + "1\nhandle = x",
    ],
)
def test_what_can_be_called_is_fine(source: str) -> None:
    assert findings(source) == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def handle(context): ...", "a/handler.py:1:1: error: `handle` takes 1 argument,"),
        ("\ndef handle(): ...", "a/handler.py:2:1: error: `handle` takes no arguments,"),
        ("def handle(a, b, c): ...", "a/handler.py:1:1: error: `handle` takes 3 arguments,"),
        ("def handle(a, b, *, c): ...", "a/handler.py:1:1: error: `handle` takes 3 arguments,"),
        ("def handler(event_type, context): ...", "a/handler.py: error: there is nothing to call; write def handle("),
        ("", "a/handler.py: error: there is nothing to call;"),
    ],
)
def test_what_cannot_be_called_is_told_with_its_place(source: str, said: str) -> None:
    (found,) = findings(source)
    assert found.startswith(said)
