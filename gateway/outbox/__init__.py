"""The outbox: it delivers pending replies to people, once and in order, across crashes."""
