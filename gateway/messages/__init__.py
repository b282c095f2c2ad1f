"""Messages: their parts and pieces, their authors, the steps of a turn, the conversation."""
