"""The hooks that come with the gateway: ordinary folders, read by the ordinary door."""
