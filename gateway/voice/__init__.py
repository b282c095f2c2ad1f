"""Words of what people say: a program of this machine, or an endpoint, is given their audio."""

from gateway.voice.transcriber import AudioText, Transcriber

__all__ = ["AudioText", "Transcriber"]
