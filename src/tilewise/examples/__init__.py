"""Worked examples that tests, benchmarks and the README share."""
