"""The check: pull a logged model and its splits, attack, judge, publish."""
