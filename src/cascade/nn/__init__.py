"""Layers, distributions, precision and the learner that every network here is made of."""
