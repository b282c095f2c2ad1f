"""What a handler finds under the names that it may import: `gateway.hooks`, and those of Hermes's modules."""
