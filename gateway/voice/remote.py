"""One call of an endpoint of OpenAI's form that transcribes or speaks."""

from typing import Any

from gateway.agent.libraries import load_library
from gateway.agent.models.refusal import find_words
from gateway.config.providers import PROVIDERS
from gateway.config.settings import ModelSettings
from gateway.errors import VoiceError
from gateway.threads import run_in_thread

CONNECT_SECONDS = 15.0
TIMEOUT = 600.0  # a call must have a limit: the caller is less patient


async def call_remote(model: ModelSettings, path: str, largest: int, **what: Any) -> bytes:
    """POST the form to the endpoint and return its answer.

    Raises:
        VoiceError: it refuses, cannot be reached, or answers without end.
    """
    aiohttp, _ = await run_in_thread(load_library, "web")
    url = f"{(model.base_url or PROVIDERS[model.provider].base_url).rstrip('/')}{path}"
    headers = {"Authorization": f"Bearer {model.api_key.reveal()}"} if model.api_key else {}
    patience = aiohttp.ClientTimeout(total=TIMEOUT, connect=CONNECT_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=patience, trust_env=True) as session,
            session.post(url, headers=headers, allow_redirects=False, **what) as response,
        ):
            body = bytearray()
            async for piece in response.content.iter_chunked(65_536):
                body += piece
                if len(body) > largest:
                    raise VoiceError(f"the endpoint sent more than {largest / 1e6:.0f} MB", is_final=True)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise VoiceError(f"the endpoint could not be reached: {error or type(error).__name__}") from None
    if response.status != 200:
        # The endpoint's own words may repeat a key: the caller that shows them removes it, then cuts.
        words = find_words(body.decode("utf-8", "replace"))
        said = f"the endpoint answered {response.status}: {words}"
        raise VoiceError(said, is_final=400 <= response.status < 429)
    return bytes(body)
