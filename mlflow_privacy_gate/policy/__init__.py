"""The policy: what is guarded, what is allowed, and the pure judgement of evidence under it."""
