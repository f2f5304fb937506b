"""Commands that read a log of decisions and pieces, or plan one; `options` are those that they share."""
