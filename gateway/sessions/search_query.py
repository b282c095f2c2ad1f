"""What a person types into a search, made safe for the two full-text indexes; and where in a text it was found."""

import re
from dataclasses import dataclass

# Scripts that are written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han, Hangul (whose words
# carry endings), and the compatibility forms of these.
NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
TRIGRAM_LENGTH = 3
BEFORE, AFTER = 40, 120


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """A search, split by who answers it: `words` and `grams` are FTS5 expressions, `short` are plain substrings."""

    words: str = ""
    grams: str = ""
    short: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


def has_no_spaces(text: str) -> bool:
    return NO_SPACES.search(text) is not None


def parse_query(query: str) -> SearchTerms:
    """Every term must be there; one in double quotes is a phrase, and the last word may be unfinished."""
    plain = [phrase or word for phrase, word in re.findall(r'"([^"]+)"|([^\s"]+)', query)]
    spaced = [term for term in plain if not has_no_spaces(term) and re.search(r"\w", term)]
    dense = [term for term in plain if has_no_spaces(term)]
    words = [_quote_term(term) for term in spaced]
    if words and plain[-1] == spaced[-1] and not query.rstrip().endswith('"'):
        words[-1] += "*"
    return SearchTerms(
        words=" AND ".join(words),
        grams=" AND ".join(_quote_term(term) for term in dense if len(term) >= TRIGRAM_LENGTH),
        short=tuple(term for term in dense if len(term) < TRIGRAM_LENGTH),
        plain=tuple(plain),
    )


def _quote_term(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def make_snippet(text: str, plain: tuple[str, ...]) -> str:
    """The text around the first term that is found in it, on one line."""
    flat = " ".join(text.split())
    low = flat.lower()
    places = [at for term in plain if (at := low.find(term.lower())) >= 0]
    start = max(0, min(places, default=0) - BEFORE)
    end = min(len(flat), start + BEFORE + AFTER)
    return ("…" if start else "") + flat[start:end] + ("…" if end < len(flat) else "")
