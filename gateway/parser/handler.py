"""The code of the parser's process: it extracts the text of pages, shortens long messages, and tries foreign patterns.

It is loaded like the handler of a hook, and imports the standard library alone. A late process is killed, so this code
does not have to limit its time. The input is a file, and is its standard input: a page of a million bytes would be slow
on the wire.
"""

import base64
import json
import os
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

HIDDEN_TAGS = frozenset({"script", "style", "template", "noscript", "svg", "head", "iframe", "object"})
BLOCK_TAGS = frozenset(
    {
        "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figure", "footer",
        "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section",
        "table", "td", "th", "tr", "ul",
    }
)  # fmt: skip
MOST_TOOLS = 1000  # in a list of them
MOST_PICTURES = 5_000_000  # characters of all pictures of a result
INPUT = 0  # a descriptor: the standard input
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}

# Charsets that pages are written in, by the names that they give them; of any other nothing is tried.
CHARSETS = {
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))},
    **{f"windows-{page}": f"cp{page}" for page in (874, *range(1250, 1259))},
    **{f"cp{page}": f"cp{page}" for page in (*range(1250, 1259), 866)},
    **dict.fromkeys(("utf-8", "utf8", "unicode-1-1-utf-8"), "utf-8"),
    **{name: name for name in ("utf-16", "utf-16le", "utf-16be", "koi8-r", "koi8-u", "big5", "gb18030", "iso-2022-jp")},
    **dict.fromkeys(("us-ascii", "ascii", "latin1", "latin-1", "iso8859-1", "l1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk", "chinese"), "gb18030"),
    **dict.fromkeys(("shift-jis", "shift_jis", "sjis", "x-sjis", "windows-31j", "ms_kanji"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "korean", "windows-949"), "cp949"),
    "euc-jp": "euc_jp",
    "x-euc-jp": "euc_jp",
    "big5-hkscs": "big5hkscs",
    "ibm866": "cp866",
    **dict.fromkeys(("macintosh", "mac", "x-mac-roman"), "mac_roman"),
}


def handle(verb: str, about: Any) -> dict[str, str]:
    match verb:
        case "page":
            text = extract_text(_read_input(), about["kind"], about["charset"])[: about["limit"]]
        case "message":
            text = compact_message(_read_input(), about["limit"])
        case _:
            text = "\n".join(name for name in about["names"] if re.fullmatch(about["pattern"], name))
    return {"text": base64.b64encode(text.encode("utf-8", "replace")).decode()}


def _read_input() -> bytes:
    return os.pread(INPUT, os.fstat(INPUT).st_size, 0)


def extract_text(body: bytes, kind: str, charset: str) -> str:
    """Extract the text of a document; HTML without its tags. An unknown charset counts as UTF-8."""
    text = body.decode(CHARSETS.get(charset.strip().lower(), "utf-8"), "replace")
    if "html" not in kind:
        return text.strip()
    page = _HtmlTextParser()
    page.feed(text)
    page.close()
    return page.text()


class _HtmlTextParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._title: list[str] = []
        self._hidden: list[str] = []
        self._open: Counter[str] = Counter()  # the number of each in `_hidden`
        self._in_title = False

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        elif tag in HIDDEN_TAGS:
            self._hidden.append(tag)
            self._open[tag] += 1
        elif tag == "body":
            self._hidden.clear()
            self._open.clear()
        elif tag in BLOCK_TAGS:
            self._parts.append("\n" + HEADINGS.get(tag, "- " if tag == "li" else ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in HIDDEN_TAGS:
            while self._open[tag]:
                self._open[self._hidden.pop()] -= 1
        elif tag in BLOCK_TAGS:
            self._parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif not self._hidden:
            self._parts.append(re.sub(r"\s+", " ", data))

    def text(self) -> str:
        lines = [line.strip() for line in "".join(self._parts).splitlines()]
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
        title = " ".join("".join(self._title).split())
        return f"{title}\n\n{body}".strip() if title and not body.startswith(title) else body


def compact_message(data: bytes, limit: int) -> str:
    """Shorten the texts of a JSON-RPC message to so many characters; those of a tool's result in total.

    A tool's structured result replaces a missing text, as a text.
    """
    message, content = json.loads(data), None
    result = message.get("result") if isinstance(message, dict) else None
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        structured = result.pop("structuredContent", None)
        has_text = any(isinstance(block, dict) and block.get("type") == "text" for block in result["content"])
        if structured is not None and not has_text:
            result["content"].append({"type": "text", "text": json.dumps(structured, ensure_ascii=False)})
        content = _cut_blocks(result.pop("content"), limit)
    if isinstance(result, dict) and isinstance(result.get("tools"), list):
        result["tools"] = result["tools"][:MOST_TOOLS]
    short = _cut_texts(message, limit)
    if content is not None:
        short["result"]["content"] = content
    return json.dumps(short)


def _cut_blocks(blocks: list[Any], limit: int) -> list[Any]:
    """Return the blocks up to so many characters of text; the last one is cut. Pictures stay whole, or are empty."""
    kept: list[Any] = []
    room, longest = MOST_PICTURES, limit
    for block in blocks[:1000]:
        if limit <= 0:
            break
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            block = {**block, "text": block["text"][:limit]}
            limit -= len(block["text"])
        picture = block.get("data") if isinstance(block, dict) and block.get("type") == "image" else None
        block = _cut_texts(block, longest)
        if isinstance(picture, str):
            block["data"] = picture if len(picture) <= room else ""
            room -= len(block["data"])
        kept.append(block)
    return kept


def _cut_texts(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value[:limit]
    if isinstance(value, list):
        return [_cut_texts(one, limit) for one in value]
    return {key: _cut_texts(one, limit) for key, one in value.items()} if isinstance(value, dict) else value
