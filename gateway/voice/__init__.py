"""Words of what people say, and answers spoken: a program of this machine, or an endpoint, does either."""

from gateway.voice.answer_text import extract_words
from gateway.voice.program import VoicePrograms
from gateway.voice.speaker import AnswerSpeaker
from gateway.voice.transcriber import AudioText, Transcriber

__all__ = ["AnswerSpeaker", "AudioText", "Transcriber", "VoicePrograms", "extract_words"]
