"""The places of hooks: the search for their folders, and the dialects that read them."""
