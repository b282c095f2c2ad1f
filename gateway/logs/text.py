"""Foreign text, made fit for a terminal, a log line and a message: no sign in it acts, and it is bounded.

Escaped are control characters (so also escape sequences and line breaks), characters that turn the direction of
writing around or take no room, and halves of surrogate pairs. Letters of every script and emoji stay as they are, with
what joins them or says how they look; in one line, where names are compared, nothing else stays that cannot be seen.
"""

import re

LINE_LIMIT = 4000
BLOCK_LIMIT = 20_000

_UNSAFE = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
)
# Blank letters and marks. Signs that join letters or choose their look are allowed where they do so; others hide in
# names.
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff"
_PICTURES = "\u203c-\u3163\u3165-\u3299\U0001f000-\U0001faff"
_UNJOINED = f"(?<![\u0590-\u109f\u1780-\u18af\ufe0f{_PICTURES}])[\u200c\u200d]"
_UNCHOSEN = f"(?<![\u00a9\u00ae{_PICTURES}])[\ufe0e\ufe0f](?!\u20e3)"
_IN_LINE = re.compile(f"[{_UNSAFE}{_UNSEEN}]|{_UNJOINED}|{_UNCHOSEN}")
_IN_BLOCK = re.compile(f"(?!\n)[{_UNSAFE}\U000e0000-\U000e007f]")


def to_one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Put the text into one line of at most about `limit` characters, with the full length if it is cut."""
    if len(text) > limit:
        text = f"{text[:limit]}... ({len(text):,} characters)"
    return text if text.isascii() and text.isprintable() else _IN_LINE.sub(_escape, text)


def to_text_block(text: str, limit: int = BLOCK_LIMIT) -> str:
    """Keep the lines of the text. Cut a long text at its beginning, since a traceback ends with the reason."""
    if len(text) > limit:
        text = f"... ({len(text):,} characters)\n{text[-limit:]}"
    return _IN_BLOCK.sub(_escape, text)


def to_json_text(text: str) -> str:
    """Escape harmful signs in JSON without changing its meaning; in other text they are written as in JSON."""
    return _IN_BLOCK.sub(_escape_for_json, text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _escape_for_json(found: re.Match[str]) -> str:
    return re.sub("(....)", r"\\u\1", found[0].encode("utf-16-be", "surrogatepass").hex())
