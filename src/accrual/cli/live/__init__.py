"""Commands for live traffic: the service, and its bandits, keys and database."""
