"""Traces of turns for a collector of OpenTelemetry's: what took how long, stage by stage, hook by hook."""
