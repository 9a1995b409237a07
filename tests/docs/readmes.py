#!/usr/bin/env python3
"""The commands of the READMEs for users, as a test runs them: readmes.py ROOT TABLE FOLDER.

A command is a fenced block of bash or sh, or a line that is indented by four spaces; in such a block that begins with
`$ ` the other lines are what it prints. TABLE has a line for each, `PAGE | WHAT | how the command begins`:

    text            no command: the first line of an indented block
    runs [WORDS]    runs here, with these words behind it
    shows           runs here, and prints what is below it: the other lines of its block, or the next block of text,
                    where times and the name of the host may differ
    by TEST         this file takes the commands of that page and runs them
    not REASON      is not run

Writes each command that runs here into FOLDER/NN.sh and what it prints into FOLDER/NN.prints, and prints PAGE and NN. A
command that the table does not know, and a line of the table that the pages do not have, are errors.
"""
import pathlib
import re
import sys

PAGES = ("README.md", "trainer/**/README.md", "examples/**/README.md")
NO_COMMANDS = {"cmake", "cpp", "mermaid", "python", "text"}
FENCE = re.compile(r"^ *```([a-z]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# The next block of text, if no other command is before it.
TEXT = re.compile(r"(?:(?!```)[^\n]*\n)*?```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^    [^\n]*\n)+", re.MULTILINE)


def items(page):
    """Each block or line that may be a command: text, output, whether it begins its block, lines of the block."""
    for fence in FENCE.finditer(page):
        if fence.group(1) in {"bash", "sh"}:
            printed = TEXT.search(page, fence.end())
            yield fence.group(2), printed.group(1).rstrip("\n") if printed else "", True, 1
        elif fence.group(1) not in NO_COMMANDS:
            sys.exit(f"a block of {fence.group(1) or 'no language'}: say in readmes.py whether that is a command")
    for block in INDENTED.finditer(FENCE.sub("", page)):
        lines = [line[4:] for line in block.group().splitlines()]
        if lines[0].startswith("$ "):
            yield lines[0][2:], "\n".join(lines[1:]), True, 1
            continue
        for number, line in enumerate(lines):
            yield line, "", number == 0, len(lines)


def pattern(printed):
    """A regular expression for each line: times and the host's name are those of another run."""
    lines = re.sub(r"([.\[\](){}*+?^$|\\])", r"\\\1", printed)
    return re.sub(r"\bon vm\b", "on [^ ]+", re.sub(r"\d+\\\.\d s", "[0-9.]+ m?s", lines))


def read_table(path):
    rows = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            page, what, begin = (part.strip() for part in line.split(" | ", 2))
            rows.append((page, what, begin.replace(r"\n", "\n")))
    return rows


def main(root, table, folder):
    root, rows, used, wrong = pathlib.Path(root), read_table(pathlib.Path(table)), set(), []
    number = 0
    for path in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        page, skip = str(path.relative_to(root)), 0
        for text, prints, first, lines in items(path.read_text()):
            if skip := max(skip - 1, 0):
                continue
            row = next((row for row in rows if row[0] == page and text.startswith(row[2])), None)
            if not row:
                wrong.append(f"{page}: nobody runs: {text.splitlines()[0]}")
                continue
            used.add(row)
            what, _, rest = row[1].partition(" ")
            if what == "text" and first:
                skip = lines
            elif what == "by" and page not in (root / rest).read_text():
                wrong.append(f"{page}: {rest} does not read this page")
            elif what in {"runs", "shows"}:
                number += 1
                stem = pathlib.Path(folder) / f"{number:02}"
                stem.with_suffix(".sh").write_text(f"{re.sub(r' +# .*', '', text)} {rest}\n")
                stem.with_suffix(".prints").write_text(pattern(prints) + "\n" if what == "shows" else "")
                print(page, stem.name)
            elif what not in {"by", "not"} or not rest:
                wrong.append(f"{page}: {row[1]}: text, runs, shows, by TEST or not REASON")
    wrong += [f"{page}: has no: {begin}" for page, what, begin in rows if (page, what, begin) not in used]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
