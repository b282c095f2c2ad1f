"""Pictures and PDFs of others are read in a process of their own, within its limits."""

from io import BytesIO

import pytest
from PIL import Image

from gateway.agent.media import SIDE
from gateway.errors import AgentError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.parser.media_process import MediaProcess
from gateway.worker.protocol import ForkServerSettings
from tests.parser.media_files import huge_png, noisy_jpeg, picture, scanned_pdf, text_pdf


@pytest.fixture
async def media(tmp_path):
    async with ForkServerClient(ForkServerSettings(processes=256)) as server:
        yield MediaProcess(server, tmp_path)


def opened(data):
    return Image.open(BytesIO(data))


async def test_a_large_picture_becomes_one_that_models_take(media):
    assert media.pid == 0
    made = opened(await media.fit_picture(noisy_jpeg(6000, 4000)))
    assert (made.format, made.size) == ("JPEG", (SIDE, SIDE * 4000 // 6000))


@pytest.mark.parametrize("kind", ["BMP", "TIFF", "AVIF", "PNG", "WEBP", "GIF", "ICO", "PPM"])
async def test_pictures_of_all_usual_kinds_are_read(media, kind):
    made = opened(await media.fit_picture(picture(kind, 200, 100)))
    assert made.format == "JPEG"
    red, green, blue = made.convert("RGB").getpixel((5, 5))
    assert red < 30 < green < 150
    assert abs(green - blue) < 20


async def test_a_picture_stands_as_the_camera_was_held_and_its_ground_is_white(media):
    turned = Image.Exif()
    turned[0x0112] = 6
    assert opened(await media.fit_picture(picture("JPEG", 200, 100, exif=turned))).size == (100, 200)
    clear = BytesIO()
    Image.new("RGBA", (20, 20), (0, 0, 0, 0)).save(clear, "PNG")
    assert opened(await media.fit_picture(clear.getvalue())).getpixel((5, 5)) == (255, 255, 255)


async def test_what_is_too_much_broken_or_none_is_refused_and_the_process_goes_on(media):
    bomb = huge_png(20_000)
    assert len(bomb) < 200_000
    for data, why in (
        (bomb, "it has 20000 x 20000 pixels, too many to be read"),
        (b"no picture", "it is not a picture of a kind that can be read here"),
        (noisy_jpeg(100, 100)[:900], "could not be read"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "it is not a picture of a kind"),
    ):
        with pytest.raises(AgentError, match=why):
            await media.fit_picture(data)
    first = media.pid
    assert first
    with pytest.raises(AgentError, match="the PDF could not be read"):
        await media.read_document(b"%PDF-1.4 a letter", 100)
    assert await media.fit_picture(picture("PNG", 5, 5))
    assert media.pid == first


async def test_a_pdf_becomes_its_text_and_pictures_of_its_pages(media):
    data = text_pdf("The first page", "And the second")
    text, pages = await media.read_document(data, 1000)
    assert (text, pages) == ("[page 1]\nThe first page\n\n[page 2]\nAnd the second", 2)
    cut, _ = await media.read_document(data, 10)
    assert cut == "[page 1]\nTh"
    page = opened(await media.render_page(data, 1))
    assert page.size == (round(SIDE * 612 / 792), SIDE)
    assert len({page.getpixel((x, 180)) for x in range(page.width)}) > 1, "there is writing on it"


async def test_a_scanned_pdf_has_pictures_alone(media):
    data = scanned_pdf(2)
    assert await media.read_document(data, 1000) == ("", 2)
    assert opened(await media.render_page(data, 0)).getpixel((50, 50))[2] > 100
