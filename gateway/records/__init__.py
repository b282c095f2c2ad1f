"""The records in the journal, and the subjects on which they are."""
