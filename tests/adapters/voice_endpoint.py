"""An endpoint of OpenAI's form that transcribes a file, and speaks a text."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from aiohttp import web

OGG = b"OggS0000000000000000000000000000OpusHead"


class VoiceEndpoint:
    """`asked` are the requests; `ills` replace the next answers, one after another; `silent`: it answers none."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.ills: list[web.Response] = []
        self.silent = False
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        app = web.Application(client_max_size=100_000_000)
        app.router.add_post("/v1/audio/transcriptions", self._hear)
        app.router.add_post("/v1/audio/speech", self._speak)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        try:
            yield
        finally:
            await runner.cleanup()

    async def _hear(self, request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        about = {"key": request.headers["Authorization"], "model": form["model"], "language": form["language"]}
        self.asked.append({**about, "name": file.filename, "type": file.content_type})
        words = file.file.read().decode()
        file.file.close()
        used = {"type": "tokens", "input_tokens": 1_000_000, "output_tokens": 1_000_000, "total_tokens": 2_000_000}
        return await self._answer(web.json_response({"text": words, "usage": used}))

    async def _speak(self, request: web.Request) -> web.Response:
        self.asked.append({"key": request.headers["Authorization"], **await request.json()})
        return await self._answer(web.Response(body=OGG, content_type="audio/ogg"))

    async def _answer(self, answer: web.Response) -> web.Response:
        if self.silent:
            await anyio.sleep_forever()
        return self.ills.pop(0) if self.ills else answer
