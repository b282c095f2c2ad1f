"""The manifests of hooks: the words of a folder about itself, its rights, and the limits of its reach."""
