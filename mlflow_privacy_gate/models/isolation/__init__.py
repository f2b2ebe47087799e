"""A model in a process of its own: what goes over the pipes, how that process is shut in, and who watches it."""
