"""One person: what the gateway holds of them, as an archive, or gone."""
