#!/usr/bin/env python3
"""Checks that README is short, and that its pictures are there, small, and described in words.

  readme_test.py FOLDER, of the sources

What the pictures show is not checked: `./dev pictures` makes them, for people to look at.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as xml

MAX_README_BYTES = 8000
MAX_PICTURE_BYTES = {".svg": 15_000, ".png": 60_000}
# A reader who cannot see a picture wants a sentence.
MIN_DESCRIPTION = 30


def pictures_of(readme):
    """The names of files, each with its alternative text; None for a source of a <picture>, whose <img> has the text."""
    yield from ((name, text) for text, name in re.findall(r"!\[([^]]*)\]\(([^)]*)\)", readme))
    yield from ((name, None) for name in re.findall(r'<source[^>]* srcset="([^"]*)"', readme))
    for image in re.findall(r"<img[^>]*>", readme):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', image))
        yield attributes["src"], attributes.get("alt", "")


def check_svg(path):
    """An SVG in a page may load nothing; browsers would not show it, and viewers should not ask."""
    root = xml.parse(path).getroot()
    if root.find("{http://www.w3.org/2000/svg}title") is None:
        yield "has no title"
    text = path.read_text()
    if "prefers-color-scheme:dark" not in text:
        yield "has no dark colours"
    for wrong in ("<script", "href", "@font-face", "@import", "url("):
        if wrong in text:
            yield f"has {wrong}"


def problems(folder):
    readme = (folder / "README.md").read_text()
    if (size := len(readme.encode())) > MAX_README_BYTES:
        yield f"README.md has {size} bytes, more than {MAX_README_BYTES}"
    pictures = list(pictures_of(readme))
    for kind in ("terminal", "page"):
        if not any(pathlib.PurePath(name).stem.startswith(kind) for name, _ in pictures):
            yield f"README.md has no picture of the {kind}"
    for name, text in pictures:
        path = folder / name
        if not path.is_file():
            yield f"{name} does not exist"
            continue
        if text is not None and len(text) < MIN_DESCRIPTION:
            yield f"{name} is described by '{text}' alone"
        if (size := path.stat().st_size) > MAX_PICTURE_BYTES[path.suffix]:
            yield f"{name} has {size} bytes, more than {MAX_PICTURE_BYTES[path.suffix]}"
        if path.suffix == ".svg":
            yield from (f"{name} {problem}" for problem in check_svg(path))
    unused = {str(path.relative_to(folder)) for path in (folder / "docs/pictures").iterdir()} - {name for name, _ in pictures}
    yield from (f"{name} is in no page" for name in sorted(unused))


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(1 if found else 0)
