"""What the folder of a hook says about it: its manifest, its rights and the limits of its reach."""
