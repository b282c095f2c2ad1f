"""Pictures and PDFs as people send them, made here."""

import zlib
from io import BytesIO
from struct import pack

from PIL import Image


def picture(kind: str, width: int, height: int, colour: str = "teal", **how: object) -> bytes:
    written = BytesIO()
    Image.new("RGB", (width, height), colour).save(written, kind, **how)
    return written.getvalue()


def noisy_jpeg(width: int, height: int) -> bytes:
    """A large one: nothing in it can be said shorter."""
    written = BytesIO()
    Image.effect_noise((width, height), 90).convert("RGB").save(written, "JPEG", quality=95)
    return written.getvalue()


def huge_png(side: int) -> bytes:
    """A small file with a huge picture in it."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + name + data + pack(">I", zlib.crc32(name + data))

    rows, packer = b"", zlib.compressobj(9)
    for _ in range(side // 100):
        rows += packer.compress(bytes((side // 8 + 1) * 100))
    header = pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows + packer.flush()) + chunk(b"IEND", b"")


def text_pdf(*pages: str) -> bytes:
    """Pages with one line of text each."""
    numbers = [4 + 2 * place for place in range(len(pages))]
    kids = " ".join(f"{one} 0 R" for one in numbers)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, text in zip(numbers, pages, strict=True):
        shown = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET"
        fonts = "/Resources << /Font << /F1 3 0 R >> >>"
        box = "/MediaBox [0 0 612 792]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} {fonts} /Contents {number + 1} 0 R >>")
        objects.append(f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream")
    body, places = "%PDF-1.4\n", list[int]()
    for number, one in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{one}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>"
    return f"{body}{end}\nstartxref\n{len(body)}\n%%EOF".encode()


def scanned_pdf(pages: int) -> bytes:
    """Pages without a word."""
    written = BytesIO()
    first, *others = [Image.new("RGB", (600, 800), "navy") for _ in range(pages)]
    first.save(written, "PDF", save_all=True, append_images=others)
    return written.getvalue()
