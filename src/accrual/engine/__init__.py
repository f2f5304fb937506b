"""Engines: `simulate`, and everything that loops over rounds."""
