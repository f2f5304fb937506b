"""The parts of report pages; a page is one self-contained file with its pictures inside."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from accrual.core.pictures import Picture


def document(title: str, heading: str, opening: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """Return the whole page; a section is (id, title, body), and is left out if its body is empty.

    Titles are text, `opening` and bodies are HTML.
    """
    shown = [(id, escape(name), body) for id, name, body in sections if body]
    links = "".join(f'<li><a href="#{id}">{name}</a></li>' for id, name, _ in shown)
    bodies = "".join(f'<section id="{id}"><h2>{name}</h2>{body}</section>' for id, name, body in shown)
    css = files("accrual.core").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # With this, the browser itself loads nothing from anywhere.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title>"
        f"<style>{css}</style></head><body><main>"
        f"<h1>{escape(heading)}</h1>"
        f"{opening}<nav><ul>{links}</ul></nav>{bodies}</main></body></html>\n"
    )


def boxes(tiles: Iterable[tuple[str, str]]) -> str:
    """Return boxes with the numbers to see first: (what is large, what stands below it)."""
    made = "".join(f'<div class="tile"><b>{big}</b><span>{small}</span></div>' for big, small in tiles)
    return f'<div class="tiles">{made}</div>'


def table(head: str, body: str) -> str:
    """Return an HTML table that scrolls if it is too wide."""
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def figure(picture: Picture) -> str:
    """Return a picture with title and caption, in the format that fits the screen."""
    wide, narrow = (
        f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}" for svg in (picture.svg, picture.narrow)
    )
    return (
        f'<figure id="fig-{picture.name}"><h3>{escape(picture.title)}</h3><picture>'
        f'<source media="(max-width: 640px)" srcset="{narrow}">'
        f'<img src="{wide}" alt="{escape(picture.title)}. {escape(picture.caption)}"></picture>'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )
