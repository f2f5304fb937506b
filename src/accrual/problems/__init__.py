"""Problems: spreads, laws, arms with caps and a window, with or without contexts."""
