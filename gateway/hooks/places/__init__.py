"""The places of hooks: where their folders lie, and how they are read in the dialects of programs."""
