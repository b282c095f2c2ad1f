"""The size of a first request in the documentation is the present one: who has a small window relies on it."""

import re

import pytest

from bench.first_request import count_tokens, fetch_first_request
from tests.docs_blocks import ROOT

SAID = re.compile(r"about ([\d,]+) tokens with (\d+)\s+tools")
CLOSE = 25  # tokens


@pytest.mark.process
def test_the_pages_say_how_many_tokens_a_first_request_has() -> None:
    request = fetch_first_request()
    said = [found for page in (ROOT / "docs").glob("*.md") for found in SAID.findall(page.read_text("utf-8"))]
    assert said
    assert {int(count) for _, count in said} == {len(request["tools"])}
    assert [tokens for tokens, _ in said if abs(int(tokens.replace(",", "")) - count_tokens(request)) > CLOSE] == []
