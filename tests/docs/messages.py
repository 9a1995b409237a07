#!/usr/bin/env python3
"""The messages of ddprun that need action, as its sources have them. What is known only at run time is "…".

A message needs action if the sources say so: by the level of a note (warn, error), by the code of an error that a
person sees (usage, unavailable, refused), or because the text itself says what to do ("…; give …", "… see …").

    messages.py ROOT           prints them: FILE<tab>TEXT
    messages.py ROOT PAGE      fails if a message has no heading on the page; prints each that has none

Messages about one value on a command line, in a file or in a request name the option and say what to give. Their list
is put into the page by insert(); all others have an entry by hand.
"""
import pathlib
import re
import sys

ROOMS = ("agent", "base", "daemon", "diagnosis", "keeper", "launcher", "operator", "rehearsal", "rendezvous", "slurm",
         "store", "warm")
# What begins a message: the call, or the first words of a note.
BEGIN = re.compile(
    r"\busage_error\(|\bErrorCode::(?:usage|unavailable|refused),|\bNote::Level::(?:warn|error),"
    r"|\bwarn_?\(|\bwarnings\.push_back\(|\bunavailable\(|\brefused\(")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
# What tells people to do something, in any text.
ACTION = re.compile(
    r"; (?:give|use|choose|write|leave|see|start|raise|remove|move|put|let|set|exclude|tell|ask|end|enlarge|run|go)"
    r" |: see [a-z]|\bsee (?:ulimit|dmesg|df|ldd|nvidia-smi|quota)|\(ulimit -"
    r"|--[a-z-]+=\w* (?:allows|admits|restarts|keeps)")
# Texts of help, manual pages, pages and completions; and what only other programs read.
NO_MESSAGES = re.compile(r"option_rows_|manual_sections|ctl_commands|ctl_text|ctl_completion|completion\.cc"
                         r"|daemon_options\.cc|option_text|sbatch_text|operator/page/page_|metrics_text")
# Parts of a longer message which is found where it begins, and why something was not tried, which needs nobody.
PARTS = re.compile(r"warm/|agent/pmi/|agent/node/operator_answers|agent/workers/python_command|base/system/careful_open"
                   r"|base/loop/child_program|in_slurm/slurm_calls|operator/control/(?:tunnel|private_socket)"
                   r"|store/client/client")
# Where a message is about one value that a person has written: insert() lists them.
ABOUT_A_VALUE = ("base/command_line/", "launcher/options/", "operator/ddpctl/", "operator/page/",
                 "daemon/daemon_options.cc", "store/door/network.cc")


def without_comments(text):
    """Comments may have quotes and brackets; a literal may have //."""
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*', lambda m: m.group(1) or "", text)


def argument(text, begin):
    """From `begin` to the bracket that closes the call, or the end of the statement."""
    depth, at = 0, begin
    while at < len(text):
        literal = LITERAL.match(text, at) if text[at] == '"' else None
        if literal:
            at = literal.end()
            continue
        if text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif text[at] == ";":
            break
        at += 1
    return text[begin:at]


def sentence(expression):
    """The literals of an expression, with "…" for what is between them."""
    parts, end = [], 0
    for literal in LITERAL.finditer(expression):
        if expression[end:literal.start()].strip():
            parts.append("…")
        parts.append(literal.group(1).replace('\\"', '"').replace("\\\\", "\\").replace("\\n", " "))
        end = literal.end()
    if expression[end:].strip():
        parts.append("…")
    return re.sub(r"…[… ]*…", "…", "".join(parts)).strip()


def expressions(path, text):
    """What may be a message: the arguments of the calls in BEGIN, and statements that tell people to do something."""
    for begin in BEGIN.finditer(text):
        yield argument(text, begin.end())
    if NO_MESSAGES.search(str(path)):
        return
    # The same text with its literals blanked: what is in quotes ends no statement.
    code = LITERAL.sub(lambda m: "_" * len(m.group()), text)
    for literal in LITERAL.finditer(text):
        if ACTION.search(literal.group(1)):
            begin = max(code.rfind(mark, 0, literal.start()) for mark in ";{}") + 1
            if not BEGIN.search(text, begin, literal.start()):
                yield argument(text, text.index('"', begin))


def messages(root):
    """File and text of each message, each text once."""
    seen = set()
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.cc")):
            if PARTS.search(str(path)):
                continue
            for expression in expressions(path, without_comments(path.read_text())):
                text = sentence(expression)
                if len(re.sub(r"[^A-Za-z]", "", text)) >= 12 and text not in seen:
                    seen.add(text)
                    yield str(path.relative_to(root)), text


def fixed_part(text):
    """What is always the same, by which a person and the test find the entry: the first long part, or the longest."""
    parts = [part.strip(" ;:,()") for part in text.split("…")]
    return next((part for part in parts if len(part) >= 30), max(parts, key=len))[:60].rstrip()


def headings(page):
    return re.findall(r"^##### ``(.*)``$", page, re.MULTILINE)


def insert(root, page):
    """The page with the messages about values, each a heading, where it has the line <!-- messages about values -->."""
    found = sorted({text for file, text in messages(root) if file.startswith(ABOUT_A_VALUE)}, key=str.lower)
    by_hand = "\n".join(headings(page))
    entries = [f"##### ``{text}``\n" for text in found if fixed_part(text) not in by_hand]
    return page.replace("<!-- messages about values -->", "\n".join(entries))


def main(root, page=None):
    root, missing = pathlib.Path(root), 0
    text = "\n".join(headings(pathlib.Path(page).read_text())) if page else ""
    for file, message in messages(root):
        if page and fixed_part(message) in text:
            continue
        missing += page is not None
        print(file, message, sep="\t")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
