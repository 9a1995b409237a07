#!/usr/bin/env python3
"""The fenced blocks of a page, as a test can run them: blocks.py PAGE here|slurm FOLDER.

A block with a title is a file of that name, and is written into FOLDER. Any other block of bash is a command. FOLDER
gets .blocks/NN.sh for each command that belongs to this kind of test, and prints a line for each: NN and what stands in
the comment before the block, `<!-- test: KEY=VALUE; … -->`:

    slurm            runs on the login node of a cluster, not here
    needs=WHAT       torch (Debian's), current (the newest), lightning: which Python it needs
    code=N           its exit code (0)
    see=PATTERN      must be in its output, or in that of the jobs it has submitted; may stand several times
    runs=SCRIPT      submits the script first, and runs the block when its workers run
    until=PATTERN    waits for this in the output of the job
"""
import pathlib
import re
import sys

FENCE = re.compile(r'^```([a-z]*)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!-- test: (.*?) -->\n$")
LANGUAGES = {"bash", "cpp", "json", "python", "text", "toml"}


def blocks(page):
    """Line, language, title, what the comment says, and text of each block."""
    for fence in FENCE.finditer(page):
        comment = COMMENT.search(page, 0, fence.start())
        says = [tuple(part.partition("=")[::2]) for part in comment.group(1).split("; ")] if comment else []
        yield page.count("\n", 0, fence.start()) + 1, fence.group(1), fence.group(2), says, fence.group(3)


def main(page, kind, folder):
    folder = pathlib.Path(folder)
    (folder / ".blocks").mkdir(parents=True)
    for line, language, title, says, text in blocks(pathlib.Path(page).read_text()):
        if language not in LANGUAGES:
            sys.exit(f"{page}:{line}: a block of {language or 'no language'}")
        if title:
            (folder / title).write_text(text)
        elif language == "bash" and (("slurm", "") in says) == (kind == "slurm"):
            (folder / ".blocks" / f"{line}.sh").write_text(text)
            print(line, *(f"{key}={value}" for key, value in says), sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:])
