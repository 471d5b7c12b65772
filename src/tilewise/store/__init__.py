"""Framed, checksummed records on disk; it knows no engine."""
