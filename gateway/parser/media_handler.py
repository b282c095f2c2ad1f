"""The code of the process for pictures and PDFs: it scales pictures down, and makes text and pictures of PDFs.

It is loaded like the handler of a hook, with the two libraries of the extra `media`; no other process loads them. The
size of a picture is read from its header before decoding: a small file can hold a huge one.
"""

import base64
import os
import warnings
from io import BytesIO
from typing import Any

import pypdfium2  # type: ignore[import-untyped]
from PIL import Image, ImageOps, UnidentifiedImageError

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "ICO", "PPM", "TGA")
MOST_PIXELS = 50_000_000  # that are decoded
INPUT = 0  # a descriptor: the standard input
POINT_SCALE = 3.0  # pixels a point, at most: what is small on paper need not be huge
QUALITY = 85

Image.MAX_IMAGE_PIXELS = None  # it would only warn of most that is too large; ours is a limit
warnings.simplefilter("ignore")  # about oddities in the file, which have no reader


def handle(verb: str, about: Any) -> dict[str, Any]:
    """Answer one request. A faulty file gives an `error`: the process can go on with the next."""
    data = os.pread(INPUT, os.fstat(INPUT).st_size, 0)
    try:
        if verb == "picture":
            return {"data": _encode(fit_picture(data, about["side"]))}
        with pypdfium2.PdfDocument(data) as document:
            if verb == "page":
                return {"data": _encode(render_page(document, about["number"], about["side"]))}
            text = extract_text(document, about["limit"])
            return {"text": _encode(text.encode("utf-8", "replace")), "pages": len(document)}
    except UnidentifiedImageError:
        return {"error": "it is not a picture of a kind that can be read here"}
    except (ValueError, OSError, SyntaxError, pypdfium2.PdfiumError) as error:  # so the libraries say that it is broken
        return {"error": " ".join(str(error).split())[:200] or type(error).__name__}


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def fit_picture(data: bytes, side: int) -> bytes:
    """Convert the picture into a JPEG of at most so many pixels a side; of an animation, its first picture."""
    with Image.open(BytesIO(data), formats=FORMATS) as picture:
        picture.draft("RGB", (side, side))  # a JPEG is decoded to little more than that
        if picture.width * picture.height > MOST_PIXELS:
            raise ValueError(f"it has {picture.width} x {picture.height} pixels, too many to be read")
        picture.load()
        return _save(picture, side)


def render_page(document: pypdfium2.PdfDocument, number: int, side: int) -> bytes:
    """Render a page, numbered from 0, as such a JPEG."""
    page = document[number]
    width, height = page.get_size()
    scale = min(side / max(width, height, 1.0), POINT_SCALE)
    return _save(page.render(scale=scale).to_pil(), side)


def _save(picture: Image.Image, side: int) -> bytes:
    picture.thumbnail((side, side))
    picture = ImageOps.exif_transpose(picture)
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        shown = picture.convert("RGBA")
        picture = Image.new("RGB", shown.size, "white")
        picture.paste(shown, mask=shown.getchannel("A"))
    saved = BytesIO()
    picture.convert("RGB").save(saved, "JPEG", quality=QUALITY)
    return saved.getvalue()


def extract_text(document: pypdfium2.PdfDocument, limit: int) -> str:
    """Extract the text, page by page, until it has more than so many characters."""
    found, length = list[str](), 0
    for number in range(len(document)):
        page = document[number].get_textpage().get_text_range().replace("\r\n", "\n").strip()
        if page:
            found.append(f"[page {number + 1}]\n{page}")
            length += len(found[-1]) + 2
        if length > limit:
            break
    return "\n\n".join(found)[: limit + 1]
