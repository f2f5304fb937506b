"""Colours of lines in pictures: Okabe and Ito's, which colour-blind readers can tell apart."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
