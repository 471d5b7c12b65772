"""Frozen values: what is asked, what was built, measured and decided."""
