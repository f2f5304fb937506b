"""The live side: events, one at a time, become a policy's statistics."""
