"""What hooks, plugins and configurations that were written for Hermes need in order to run here."""
