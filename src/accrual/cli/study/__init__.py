"""Commands that play problems: the paper's, the gallery's and your own."""
