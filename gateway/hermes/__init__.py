"""Support for hooks, plugins and configurations that were written for Hermes."""
