"""The spoken words of an answer: without the marks of Markdown, and without parts that make no sense aloud.

Code blocks, tables and addresses are left out: the text, which comes first, has them. An address is shortened to its
host. The time for it grows with the text's length and with nothing else.
"""

import re

LONGEST = 3000  # characters: some three minutes of speech
SENTENCE_END = re.compile(r"[.!?\u2026:](?=\s)|[\u3002\uff01\uff1f\n]")

_FENCE = re.compile(r"[ >]{0,20}(`{3,}|~{3,})")
_TABLE_ROW = re.compile(r"\s{0,3}\|")
_RULE = re.compile(r"\s{0,3}(?:[-*_=][ \t]*){3,}$")
_LINE_MARK = re.compile(
    r"\A(?:[ \t]*(?:>|#{1,6}(?=\s)|[-+*\u2022](?=\s)|\d{1,9}[.)](?=\s)))+[ \t]*(?:\[[ xX]\](?=\s))?"
)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\](?:\([^()\s]{0,2000}(?:[ \t]+\"[^\"\n]{0,300}\")?\)|\[[^\[\]\n]{0,200}\])")
_ADDRESS = re.compile(r"<?\bhttps?://(?:www\.)?([^\s/:?#<>()\[\]`*]{1,253})[^\s<>()\[\]`*]*>?")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,300}>|<!--")
_MARK = re.compile(r"\\([!-/:-@\[-`{-~])|\*{1,3}|~~|\|\||`{1,20}|(?<![^\W_])_{1,3}|_{1,3}(?![^\W_])")


def extract_words(markdown: str, longest: int = LONGEST) -> str:
    """Return the words of a text that are to be spoken; empty if it has none. A longer text is cut after a sentence."""
    lines, fence = list[str](), ""
    for line in markdown.split("\n"):
        if found := _FENCE.match(line):
            mark = found.group(1)
            if not fence or (mark[0] == fence[0] and len(mark) >= len(fence)):
                fence = "" if fence else mark
                continue
        if not fence and not _TABLE_ROW.match(line) and not _RULE.match(line) and (words := _read_line(line)):
            lines.append(words)
    return _cut("\n".join(lines), longest)


def _read_line(line: str) -> str:
    line = _LINE_MARK.sub("", line).rstrip()
    if (bare := line.rstrip("#")).endswith((" ", "\t")):
        line = bare.rstrip()
    line = _TAG.sub("", _ADDRESS.sub(r"\1", _LINK.sub(r"\1", line)))
    line = _MARK.sub(lambda found: found.group(1) or "", line)
    line = " ".join("".join(sign for sign in line if sign.isprintable() or sign.isspace()).split())
    return line if any(map(str.isalnum, line)) else ""


def _cut(words: str, longest: int) -> str:
    if len(words) <= longest:
        return words
    begun = words[: longest + 1]
    ends = [found.end() for found in SENTENCE_END.finditer(begun) if found.end() <= longest]
    end = ends[-1] if ends else max(begun.rfind(" "), 0) or longest
    return words[:end].rstrip()
