"""Puts a picture of its own below a happy answer."""

from pathlib import Path

PICTURES = Path(__file__).resolve().parent / "pictures"


def _with_picture(response_text, **_kwargs):
    for picture in PICTURES.glob("*.png"):
        if picture.stem in response_text:
            return f"{response_text}\n\nMEDIA:{picture}"


def register(ctx):
    ctx.register_hook("transform_llm_output", _with_picture)
