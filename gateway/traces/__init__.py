"""Traces of turns for a collector of OpenTelemetry's: the duration of each stage and of each hook."""
