"""The ground floor: compilation, counter-based random numbers and errors."""
