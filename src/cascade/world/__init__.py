"""The DreamerV2 world model: what the world looks like, how it moves, where it ends. No reward."""
