"""Measure candidates fairly and draw regions from the results."""
