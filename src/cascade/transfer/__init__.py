"""Zero-shot transfer: reward heads on a frozen world model, and behaviour policies trained in its imagination."""
