"""What was collected, kept on disk without rewards in sight, and drawn as training batches."""
