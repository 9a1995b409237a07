#!/usr/bin/env python3
"""Draws the picture of a restart from a recording (record.py): draw.py RUN.json >restart.svg."""
import html
import json
import pathlib
import re
import sys

LEFT, RIGHT, WIDTH, ROW = 96, 30, 960, 22
BEFORE, AFTER = 0.3, 0.35  # seconds that are shown before the crash, and after the slower first step
UNITS = {"ms": 1e-3, "s": 1, "min": 60}
# The phases of ddprun's line "lost in restarts", as people think of them.
PHASES = [("the others are stopped", "#c0392b", ("detected", "told", "stopped", "gone", "met")),
          ("processes start", "#e08e0b", ("started",)),
          ("imports, until the ranks meet", "#8e5bb5", ("store contact",)),
          ("process group, snapshot, first step", "#2e86ab", ("progress",))]
TITLES = {"warm": "restart as it is by default (--warm=auto)",
          "cold": "the same with --warm=off: each rank imports PyTorch again"}


def phases(lines):
    """Seconds of each phase, from ddprun's own account."""
    account = next(text for _, text in lines if text.startswith("lost in restarts: "))
    found = re.findall(r"([\d.]+) (ms|s|min) ([a-z ]+?)(?:,|$)", account.split(": ", 1)[1])
    seconds = {name: float(number) * UNITS[unit] for number, unit, name in found}
    return [sum(seconds[name] for name in names) for _, _, names in PHASES]


def first_step(run):
    """When the first step after the restart has ended on all ranks."""
    return max(min(at for at, generation, _ in steps if generation == 1) for steps in run["steps"])


class Picture:
    def __init__(self, end):
        self.parts, self.scale, self.end = [], (WIDTH - LEFT - RIGHT) / (end + BEFORE), end

    def x(self, at):
        return LEFT + (at + BEFORE) * self.scale

    def text(self, x, y, words, rest=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {rest}>{html.escape(words)}</text>')

    def bar(self, begin, end, y, height, color):
        begin, end = max(begin, -BEFORE), min(end, self.end)
        if end > begin:
            width = max((end - begin) * self.scale, .8)
            self.parts.append(f'<rect x="{self.x(begin):.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" '
                              f'fill="{color}"/>')

    def rank(self, number, steps, y):
        """A bar for each step, with a gap behind it, so that the steps can be counted."""
        self.text(LEFT - 10, y + 14, f"rank {number}", 'text-anchor="end"')
        self.bar(-BEFORE, self.end, y + 2, ROW - 6, "#f1f3f4")
        for (begin, one, _), (end, two, _) in zip(steps, steps[1:]):
            if one == two:
                self.bar(begin, end - .008, y + 2, ROW - 6, "#3d9970")

    def panel(self, run, title, y):
        self.text(LEFT, y, title, 'font-weight="bold"')
        for number, steps in enumerate(run["steps"]):
            self.rank(number, steps, y + 8 + number * ROW)
        at, y_phases = 0.0, y + 10 + len(run["steps"]) * ROW
        self.text(LEFT - 10, y_phases + 12, "ddprun", 'text-anchor="end"')
        for (_, color, _), seconds in zip(PHASES, phases(run["lines"])):
            self.bar(at, at + seconds, y_phases, 15, color)
            at += seconds
        again = self.x(first_step(run))
        words, late = f"all ranks train again after {first_step(run):.2f} s", again > WIDTH / 2
        self.text(again - 8 if late else again + 6, y_phases + (29 if late else 12), words,
                  f'text-anchor="{"end" if late else "start"}"')
        self.parts.append(f'<path d="M{self.x(0):.1f} {y + 6} V{y_phases + 18}" stroke="#c0392b" '
                          f'stroke-dasharray="4 3"/>')
        return y_phases + 60

    def axis(self, y):
        self.text(self.x(0), y - 5, "rank 1 dies", 'text-anchor="middle" fill="#c0392b"')
        for half in range(0, int(self.end * 2) + 1):
            self.parts.append(f'<path d="M{self.x(half / 2):.1f} {y} v5" stroke="#555"/>')
            self.text(self.x(half / 2), y + 18, f"{half / 2:g} s", 'text-anchor="middle"')

    def legend(self, y):
        x = LEFT
        for words, color in [("a step", "#3d9970")] + [(name, color) for name, color, _ in PHASES]:
            self.parts.append(f'<rect x="{x}" y="{y - 10}" width="11" height="11" fill="{color}"/>')
            self.text(x + 16, y, words)
            x += 34 + 6.3 * len(words)


def draw(recording):
    picture = Picture(max(first_step(recording[kind]) for kind in TITLES) + AFTER)
    y = 28
    for kind, title in TITLES.items():
        y = picture.panel(recording[kind], title, y)
    picture.axis(y - 24)
    picture.legend(y + 18)
    where = f"four ranks, DistributedDataParallel with Gloo; {recording['machine']}; {recording['date']}"
    picture.text(LEFT, y + 42, where, 'fill="#555"')
    height = y + 56
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
            f'font-size="13" fill="#222"><title>A restart of four ranks, warm and cold</title>'
            f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#fff"/>\n' + "\n".join(picture.parts) + "\n</svg>\n")


if __name__ == "__main__":
    sys.stdout.write(draw(json.loads(pathlib.Path(sys.argv[1]).read_text())))
