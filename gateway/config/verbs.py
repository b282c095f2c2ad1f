"""The verb of the configuration."""

from gateway.verbs import NoParams, Verb

VERBS = (Verb("config.show", "Show the settings in effect.", NoParams, "admin", page="look"),)
