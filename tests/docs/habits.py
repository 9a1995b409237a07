#!/usr/bin/env python3
"""Counts habits of prose that readers stumble over (CONTRIBUTING.md, "Prose") against limits that only go down,
tests/data/habits.txt.

    habits.py ROOT              fails if a page, or a folder of sources, has more of them than the table allows
    habits.py ROOT --rewrite    lowers the limits to what is there now; it raises none
    habits.py ROOT --show PATH  prints each of them in this file, with its line
    habits.py ROOT --rates      prints how many there are per 10,000 words

Pages are Markdown without its code; of sources, the comments and the texts in quotes count, by folder. A page or a
folder without a line in the table must have none.
"""
import pathlib
import re
import subprocess
import sys

TABLE = "tests/data/habits.txt"
# Recorded results, history and builds are left out.
NO_PAGES = re.compile(r"(^|/)(CHANGELOG|RESULTS[\w.-]*)\.md$|^tests/data/|^build")
BEGIN = r"(?:^|(?<=[.:!?] )|(?<=\| ))"  # of a sentence, or of a cell of a table
HABITS = {
    "says": r"\b(?:says|said)\b",
    "tells": r"\b(?:tells?|told)\b",
    "nobody": r"\b(?:nobody|somebody|anybody|whoever)\b",
    "What is": BEGIN + r"What (?!to\b)(?=[^.?!:]*[.:;,](?: |$))",
    "goes on": r"\b(?:go(?:es)?|went|going) on\b(?! (?:to|the)\b)",
    "stands": r"\b(?:stands|stood)\b(?! for\b)",
    "lies": r"\b(?:lies|lay)\b",
    "beside": r"\bbeside\b",
    "behind": r"\bbehind\b",
    "at once": r"\bat once\b",
    "anew": r"\banew\b",
    "for ever": r"\bfor ever\b",
    "is none": r"(?<!there )\b(?:is|are) none\b",
    "So": BEGIN + r"So ",
}
PATTERN = re.compile("|".join(f"({pattern})" for pattern in HABITS.values()))
CODE = re.compile(r"^ *```.*?^ *```$|^    \S[^\n]*$|(`+)[^\n]+?(?:\n[^\n]+?)?\1|<!--.*?-->", re.MULTILINE | re.DOTALL)
SOURCES = (".h", ".cc", ".cu", ".proto")
LITERAL_OR_COMMENT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|//+ ?([^\n]*)')


def prose_of_page(text):
    """The lines of a page without code, as (number of the line, paragraph)."""
    text = CODE.sub(lambda m: re.sub(r"[^\n]", "", m.group()) or "x", text)
    number, begin, lines = 0, 1, []
    for number, line in enumerate(text.splitlines() + [""], 1):
        item = re.match(r"\s*(?:[-*#|>]|\d+\.)", line)
        if lines and (not line.strip() or item):
            yield begin, " ".join(lines)
            lines = []
        if line.strip():
            begin = begin if lines else number
            lines.append(re.sub(r"^\s*(?:[-*#>]+|\d+\.) +", "", line).replace("**", "").strip())


def prose_of_source(text):
    """Comments of neighbouring lines, and neighbouring texts in quotes, each as one paragraph."""
    last, begin, parts = (0, ""), 1, []
    number, at = 1, 0
    for found in LITERAL_OR_COMMENT.finditer(text):
        number, at = number + text.count("\n", at, found.start()), found.start()
        kind = "comment" if found.group(1) is None else "literal"
        words = found.group(1) if kind == "literal" else found.group(2)
        if parts and (kind != last[1] or number > last[0] + 1 or not words.strip()):
            yield begin, " ".join(parts)
            parts = []
        if words.strip():
            begin = begin if parts else number
            parts.append(words.strip())
        last = (number, kind)
    if parts:
        yield begin, " ".join(parts)


def found_in(path):
    """Each habit in a file: its line (that of the paragraph), its name, the words around it."""
    text = path.read_text(errors="replace")
    for line, prose in (prose_of_page if path.suffix == ".md" else prose_of_source)(text):
        for found in PATTERN.finditer(prose):
            yield line, list(HABITS)[found.lastindex - 1], prose[max(found.start() - 40, 0):found.end() + 40]


def words_in(path):
    text = path.read_text(errors="replace")
    return sum(len(prose.split()) for _, prose in (prose_of_page if path.suffix == ".md" else prose_of_source)(text))


def files(root):
    """Each file that counts, and under which name."""
    call = ["git", "-C", root, "ls-files", "-co", "--exclude-standard"]
    names = subprocess.run(call, capture_output=True, text=True).stdout.split()
    for name in sorted(names or (str(path.relative_to(root)) for path in root.rglob("*"))):
        if not (root / name).is_file() or NO_PAGES.search(name):
            continue
        if name.endswith(".md"):
            yield name, name
        elif name.endswith(SOURCES):
            yield name, name.split("/")[0] + "/"


def read_table(path):
    rows = [line.rsplit(" ", 1) for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {name.strip(): int(count) for name, count in rows}


def main(root, what="", path=""):
    root = pathlib.Path(root)
    if what == "--show":
        for found in found_in(root / path):
            print(*found, sep="\t")
        return 0
    counts, words = {}, {"pages": 0, "sources": 0}
    total = dict(words)
    for name, unit in files(root):
        count = sum(1 for _ in found_in(root / name))
        counts[unit] = counts.get(unit, 0) + count
        kind = "pages" if name.endswith(".md") else "sources"
        total[kind] += count
        words[kind] += words_in(root / name) if what == "--rates" else 1
    if what == "--rates":
        for kind, number in words.items():
            print(f"{kind}: {total[kind]} in {number} words, {10_000 * total[kind] / max(number, 1):.1f} per 10,000")
        return 0
    limits = read_table(root / TABLE)
    if what == "--rewrite":
        head = [line for line in (root / TABLE).read_text().splitlines() if line.startswith("#")]
        rows = [f"{name} {min(limit, counts[name])}" for name, limit in sorted(limits.items()) if counts.get(name)]
        (root / TABLE).write_text("\n".join(head + rows) + "\n")
        return 0
    wrong = [f"{name}: {count} habits of prose, {limits.get(name, 0)} are allowed; see them with {sys.argv[0]} . "
             "--show FILE, and CONTRIBUTING.md for better words"
             for name, count in counts.items() if count > limits.get(name, 0)]
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
