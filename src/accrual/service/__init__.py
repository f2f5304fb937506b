"""The decision service: live bandits over HTTP, with keys, limits and metrics."""
