"""Figures and pages, drawn from recorded results only."""
