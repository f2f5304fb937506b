"""Read a log of decisions and pieces, and estimate how its reward arrives.

Other rooms use `open_log` and `opened` (`open_log`), `Log` (`log`), `fit` and `fit_log` (`fit`), `Fitted` and
its parts (`fitted`), and `convert`, which makes a log from other tables. `read` turns sources into tables;
`estimate` turns tables into estimates.
"""
