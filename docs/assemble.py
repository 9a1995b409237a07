#!/usr/bin/env python3
"""Puts the pages of the site together: assemble.py BIN FOLDER.

BIN has the programs. FOLDER gets the pages of docs/pages, the pages of the repository that belong to the site
(REPOSITORY), and the reference, which is made from what the programs print. What a page includes with a line
`--8<-- "PATH"` is put in from the root of the repository, so that a text or a program stands in one place only.
figures.py puts in what was measured.
"""
import os
import pathlib
import posixpath
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "docs"))
import figures
import messages
import reference
import sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Pages that have their place beside the sources they are about: in the repository, in the site.
REPOSITORY = {
    "launcher/DIFFERENCES.md": "reference/differences.md",
    "slurm/README.md": "reference/slurm.md",
    "slurm/FROM_TORCHRUN.md": "moving/torchrun.md",
    "rendezvous/PROTOCOL.md": "background/protocol.md",
    "rendezvous/FAULTS.md": "background/faults.md",
    "rendezvous/SECURITY.md": "background/security.md",
    "warm/README.md": "background/warm-starts.md",
    "diagnosis/standstill/README.md": "background/standstill.md",
}
TITLES = {"slurm/README.md": "Slurm's variables, and how workers see them"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r'^--8<-- "([^"]+)"$', re.MULTILINE)


def outside_fences(text, change):
    """Applies `change` to what stands in no fenced block."""
    result, plain, fence = [], [], None
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if fence is None and not mark:
            plain.append(line)
            continue
        if fence is None:
            result.append(change("".join(plain)))
            plain, fence = [], mark.group(1)
        elif mark and line.strip().startswith(fence) and line.strip() == mark.group(1):
            fence = None
        result.append(line)
    return "".join(result) + change("".join(plain))


def link_of(source, place, match):
    """A link of a repository's page, as the site can follow it: to a page of the site, or the path as text."""
    picture, text, target = match.groups()
    if "://" in target or target.startswith("#"):
        return match.group(0)
    path, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if path in REPOSITORY:
        way = posixpath.relpath(REPOSITORY[path], posixpath.dirname(place))
        return f"{picture}[{text}]({way}{'#' + anchor if anchor else ''})"
    # What is not in the site is in the sources.
    return text if path in text or text.strip("`") == path else f"{text} (`{path}`)"


def repository_page(source, place):
    text = (ROOT / source).read_text()
    if source in TITLES:
        text = re.sub(r"^# .*", "# " + TITLES[source], text, count=1)
    text = outside_fences(text, lambda plain: LINK.sub(lambda m: link_of(source, place, m), plain))
    return DIAGRAM.sub(lambda m: sequence.svg(m.group(1)), text)


def included(text):
    return INCLUDE.sub(lambda m: (ROOT / m.group(1)).read_text().rstrip("\n"), text)


def main(programs, folder):
    folder = pathlib.Path(folder)
    shutil.copytree(ROOT / "docs" / "pages", folder, dirs_exist_ok=True)
    for source, place in REPOSITORY.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(repository_page(source, place))
    for name, text in reference.pages(pathlib.Path(programs)):
        (folder / "reference" / f"{name}.md").write_text(text)
    for page in folder.rglob("*.md"):
        text = figures.filled(included(page.read_text()))
        page.write_text(messages.insert(ROOT, text) if page.name == "troubleshooting.md" else text)


if __name__ == "__main__":
    main(*sys.argv[1:])
