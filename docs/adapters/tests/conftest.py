"""What every project of an adapter's has beside its tests: the plugin of the behaviour suite."""

pytest_plugins = ["gateway.testing.networks.plugin"]
