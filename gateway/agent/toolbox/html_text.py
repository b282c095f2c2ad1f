"""A web page as text that a model can read: what is shown, without what makes it move."""

import re
from html.parser import HTMLParser

HIDDEN_TAGS = frozenset({"script", "style", "template", "noscript", "svg", "head", "iframe", "object"})
BLOCK_TAGS = frozenset(
    {
        "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figure", "footer",
        "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section",
        "table", "td", "th", "tr", "ul",
    }
)  # fmt: skip
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


def extract_text(body: bytes, kind: str, charset: str | None) -> str:
    """The text of a document; HTML without its tags."""
    try:
        text = body.decode(charset or "utf-8", "replace")
    except LookupError:
        text = body.decode("utf-8", "replace")
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
        self._in_title = False

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        elif tag in HIDDEN_TAGS:
            self._hidden.append(tag)
        elif tag == "body":
            self._hidden.clear()
        elif tag in BLOCK_TAGS:
            self._parts.append("\n" + HEADINGS.get(tag, "- " if tag == "li" else ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
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
