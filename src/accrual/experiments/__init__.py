"""Settings as plain data."""
