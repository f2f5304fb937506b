"""What a log, or a few numbers, say about policies: `compare`, `replay` and `plan`."""
