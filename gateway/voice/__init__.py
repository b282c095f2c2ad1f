"""Transcription of voice messages, and spoken answers: by a program of this machine, or an endpoint."""
