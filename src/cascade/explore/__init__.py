"""The population of explorers: what they are rewarded for, and how they are trained in imagination."""
