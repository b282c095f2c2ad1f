"""The outbox: what is owed to people goes out, once, in order, whatever happens in between."""
