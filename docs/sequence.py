"""Draws the sequence diagrams of the repository's pages (Mermaid's sequenceDiagram) as SVG, without a network.

Known are: participant NAME [as LABEL]; A->>B: TEXT; A-->>B: TEXT; A--xB: TEXT; Note over A[,B]: TEXT. Anything else is
an error, so that a page never shows half a diagram.
"""
import html
import re

COLUMN, ROW, LETTER, NOTE, MARGIN = 230, 34, 6.6, 22, 20
MESSAGE = re.compile(r"(\w+)(--?>>|--x)(\w+): (.*)")
NOTE_OVER = re.compile(r"Note over (\w+)(?:,(\w+))?: (.*)")
PARTICIPANT = re.compile(r"participant (\w+)(?: as (.*))?")


def text(x, y, words, anchor="middle"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def box(x, y, width, words, kind):
    left, top = x - width / 2, y - NOTE + 6
    return (f'<rect class="{kind}" x="{left:.0f}" y="{top}" width="{width:.0f}" height="{NOTE}" rx="3"/>'
            + text(x, y, words))


def arrow(x1, x2, y, line, words):
    """To another column, or a loop at one's own."""
    style = ' stroke-dasharray="5 3"' if line.startswith("--") else ""
    if x1 == x2:
        path, at, anchor = f"M{x1} {y - 8} h26 v12 h-20", x1 + 34, "start"
        tip, way = x1 + 4, -1
        y_tip = y + 4
    else:
        way = 1 if x2 > x1 else -1
        path, at, anchor = f"M{x1} {y} H{x2 - 3 * way}", (x1 + x2) / 2, "middle"
        tip, y_tip = x2 - 2 * way, y
    if line == "--x":
        head = f'<path d="M{tip - 5} {y_tip - 5} l10 10 m0 -10 l-10 10"/>'
    else:
        head = f'<path class="tip" d="M{tip} {y_tip} l{-8 * way} -4 v8 z"/>'
    return f'<path d="{path}"{style}/>{head}' + text(at, y - 6 if x1 != x2 else y + 2, words, anchor)


def svg(diagram):
    """The picture of the lines behind `sequenceDiagram`."""
    places, labels, rows, parts = {}, {}, [], []
    for line in filter(None, map(str.strip, diagram.splitlines()[1:])):
        if found := PARTICIPANT.fullmatch(line):
            labels[found[1]] = found[2] or found[1]
        elif not (MESSAGE.fullmatch(line) or NOTE_OVER.fullmatch(line)):
            raise ValueError(f"docs/sequence.py does not know this line of a diagram: {line}")
        else:
            rows.append(line)
    for name in labels:
        places[name] = COLUMN / 2 + COLUMN * len(places)
    # What stands right of a loop may need more room than the columns.
    loops = [places[m[1]] + 44 + LETTER * len(m[4]) for m in map(MESSAGE.fullmatch, rows) if m and m[1] == m[3]]
    width, height = max([COLUMN * len(places) + 120, *loops]), ROW * (len(rows) + 1) + MARGIN
    for name, x in places.items():
        parts.append(f'<path class="life" d="M{x} 30 V{height - 6}"/>')
        parts.append(box(x, 22, 24 + LETTER * len(labels[name]), labels[name], "who"))
    for number, line in enumerate(rows):
        y = ROW * (number + 1) + 2 * MARGIN
        if found := MESSAGE.fullmatch(line):
            parts.append(arrow(places[found[1]], places[found[3]], y, found[2], found[4]))
        else:
            found = NOTE_OVER.fullmatch(line)
            x = (places[found[1]] + places[found[2] or found[1]]) / 2
            wide = 18 + LETTER * len(found[3])
            # A note that is wider than its column stays within the picture.
            parts.append(box(max(x, wide / 2 + 2), y, wide, found[3], "note"))
    return (f'<div class="sequence"><svg viewBox="0 0 {width:.0f} {height + MARGIN:.0f}" '
            f'style="min-width: {width * .6:.0f}px" role="img" aria-label="sequence diagram">'
            + "".join(parts) + "</svg></div>\n")
