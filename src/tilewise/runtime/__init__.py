"""Calls: look up what was decided, or resolve what was not."""
