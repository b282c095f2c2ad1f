"""Words that people search for: each is near the top of the page that answers it, or is listed without a page."""

import re
import tomllib
from collections import Counter

import pytest

from tests.docs import SEARCH_WORDS
from tests.docs_blocks import ROOT

FOUND = tomllib.loads(SEARCH_WORDS.read_text("utf-8"))
PAGES: dict[str, str] = FOUND["pages"]
NO_PAGE: list[str] = FOUND["no_page"]["words"]
TOP = 300  # words of a page
MOST_OF_A_PAGE = 6
MOST_WITHOUT_A_PAGE = 4  # it only falls: whoever gives one a page writes the new number here


def is_near_top(word: str, text: str) -> bool:
    return f" {plain(word)}" in f" {plain(' '.join(text.split()[:TOP]))}"


def plain(text: str) -> str:
    """In lower case, with one space for a hyphen, a mark and the end of a line."""
    return " ".join(re.findall(r"[\w.]+", text.lower()))


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("# Limits\n\nA **rate\nlimit** is here.", True),
        ("Rate-limits are here.", True),
        ("Separate limits are here.", False),
        ("word " * TOP + "rate limit", False),
    ],
)
def test_a_word_is_found_near_the_top(text: str, is_found: bool) -> None:
    assert is_near_top("rate limit", text) is is_found


def test_each_word_stands_near_the_top_of_its_page() -> None:
    texts = {place: (ROOT / place.partition("#")[0]).read_text("utf-8") for place in PAGES.values()}
    assert [word for word, place in PAGES.items() if not is_near_top(word, texts[place])] == []


def test_a_page_answers_few_words() -> None:
    counts = Counter(place.partition("#")[0] for place in PAGES.values())
    assert {page: count for page, count in counts.items() if count > MOST_OF_A_PAGE} == {}


def test_no_more_words_are_without_a_page_than_before() -> None:
    assert (len(NO_PAGE), PAGES.keys() & NO_PAGE) == (MOST_WITHOUT_A_PAGE, set())
