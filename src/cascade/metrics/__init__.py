"""Measures of what was explored and learned, and their aggregates over seeds: NumPy, SciPy, rliable."""
