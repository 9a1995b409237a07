"""Makes the reference from what the programs print: their manual pages, which come from the option tables."""
import re
import subprocess

WHAT = {
    "ddprun": "Every option of `ddprun`, with its default and what torchrun's is. Made from the program's own table.",
    "ddpctl": "Every command of `ddpctl`. Made from the program's own table.",
}


def plain(roff):
    return roff.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def words(text):
    """A text of a manual page as Markdown reads it."""
    return re.sub(r"([\\`*_<\[])", r"\\\1", re.sub(r"\\f[IRB]", "", plain(text)))


def anchor(term, command=""):
    """--nnodes=N|MIN:MAX is found under #nnodes, `logs RANK` under #logs, and its option under #logs-follow."""
    names = re.findall(r"--([a-z0-9-]+)", term) or [re.split(r"[ =,]", term)[0].lower()]
    return command + names[0]


def entry(term, what, command):
    if term.startswith("-"):
        return f"#### `{term}` {{#{anchor(term, command)}}}\n\n{what}\n\n"
    return f"`{term}`\n\n:   {what}\n\n"


def of_manual(name, manual):
    """A manual page in roff's man macros as a page of the site."""
    result, heading, command = [f"# {name}\n\n{WHAT[name]}\n\n"], "", ""
    lines = iter(manual.splitlines())
    for line in lines:
        if line.startswith(".SH "):
            heading, command = line[4:].capitalize(), ""
            if heading in ("Name", "Synopsis"):
                heading = ""
            elif heading != "Description":
                result.append(f"## {heading}\n\n")
        elif line.startswith(".SS "):
            title = plain(line[4:])
            command = anchor(title) + "-" if heading == "Commands" else ""
            result.append(f"### `{title}` {{#{anchor(title)}}}\n\n" if command else f"### {title}\n\n")
        elif line == ".TP":
            term = plain(next(lines)[3:])
            result.append(entry(term, words(next(lines)), command))
        elif heading and not line.startswith("."):
            result.append(words(line) + "\n\n")
    return "".join(result)


def printed(program, option):
    return subprocess.run([program, option], check=True, capture_output=True, text=True).stdout


def pages(programs):
    """The name and the text of each page of the reference."""
    for name in WHAT:
        yield name, of_manual(name, printed(programs / name, "--print-man"))
    help_text = printed(programs / "ddprun-rendezvous", "--help")
    yield "ddprun-rendezvous", ("# ddprun-rendezvous\n\nA rendezvous outside the jobs. This is its `--help`.\n\n"
                                f"```text\n{help_text}```\n")
