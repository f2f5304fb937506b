"""A typed client of the decision service, plain and asynchronous."""
