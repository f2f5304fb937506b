"""Logs of decisions and pieces: read in any form, and fitted."""
