"""CASCADE: one general world model from a handful of reward-free deployments."""

__version__ = "0.1.0"
