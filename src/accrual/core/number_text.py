"""Write numbers for tables, sentences and notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape


def figure(value: float, digits: int = 4, sign: str = "") -> str:
    """Write a number: without decimals from a thousand on, with `digits` digits below, and NaN as a dash.

    Examples
    --------
    >>> figure(12345.6), figure(0.123456), figure(2.5, sign="+"), figure(math.nan)
    ('12,346', '0.1235', '+2.5', '-')
    """
    if math.isnan(value):
        return "-"
    return f"{value:{sign},.0f}" if abs(value) >= 1000 else f"{value:{sign}.{digits}g}"


def notebook_html(sentences: Iterable[str], head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write sentences and a table as HTML, for a notebook.

    Examples
    --------
    >>> notebook_html(["b pays best"], ["arm"], [["a & b"]])
    '<p>b pays best</p><table><tr><th>arm</th></tr><tr><td>a &amp; b</td></tr></table>'
    """
    said = "".join(f"<p>{escape(line)}</p>" for line in sentences if line)
    titles = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"{said}<table><tr>{titles}</tr>{body}</table>"
