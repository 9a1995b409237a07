#!/usr/bin/env python3
"""Refuses a measured figure on a page that is not from RESULTS.json: measured.py ROOT.

docs/figures.py puts figures into the pages of docs/pages when they are built, so their sources have none: no number
with a decimal point before a unit, and none before ms, µs or MB. Code is left out. The table of README.md is
that of today.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "docs"))
import figures

FIGURE = re.compile(r"(?<![\w.,])(?:\d[\d,]*\.\d+ (?:s|%|[KMG]i?B|times|million)|\d[\d,.]* (?:ms|µs|us|MB))(?!\w)"
                    r"|\d{1,3}(?:,\d{3})+ a second")
CODE = re.compile(r"^```.*?^```|`[^`\n]*\n?[^`\n]*`|^    \S.*?$", re.MULTILINE | re.DOTALL)


def blanked(text):
    """A page without its code and its places for figures, line by line."""
    keep_lines = lambda match: re.sub(r"[^\n]", " ", match.group())
    return figures.ONE.sub(keep_lines, CODE.sub(keep_lines, text))


def wrong(root):
    readme = (root / "README.md").read_text()
    for block in figures.BLOCK.finditer(readme):
        if block.group() != block.group(1) + figures.table(block.group(2)):
            yield f"README.md: the table \"{block.group(2)}\" is an old one: docs/figures.py --write"
    for path in [root / "README.md", *sorted((root / "docs" / "pages").rglob("*.md"))]:
        text, name = path.read_text(), path.relative_to(root)
        for place in figures.ONE.finditer(text):
            if place.groups() not in figures.rows():
                line = text.count("\n", 0, place.start()) + 1
                yield f"{name}:{line}: no measure \"{place.group(1)}\" of {place.group(2)}"
        for number, line in enumerate(blanked(figures.BLOCK.sub("", text)).splitlines(), 1):
            for found in FIGURE.finditer(line):
                yield f"{name}:{number}: {found.group()} is not from RESULTS.json: write {{{{MEASURE | SUBJECT}}}}"


def main(root):
    found = [*wrong(pathlib.Path(root))]
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
