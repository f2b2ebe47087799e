"""Membership inference attacks: pure functions from observations to one score per row, higher = more likely a member."""
