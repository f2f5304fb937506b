"""From a log of decisions and pieces to the spread, the window, the caps and a problem."""
