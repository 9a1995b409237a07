#!/usr/bin/env python3
"""Checks the documentation as it is built: page_check.py PAGES SITE BIN. Prints what is wrong, and ends with 1 then.

- Each link of the site leads to a file that is there, and to an anchor that it has. Nothing is loaded from a network.
- Each option that a page names in `code` is one of the programs', or of a program that is named in FOREIGN.
- A block of text has no command of ours: those are blocks of bash, which a test runs.
"""
import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import blocks

# Options of Slurm, containers, shells and other launchers, which pages name too.
FOREIGN = set("""
accelerate array bind bind-to cap-drop cpus-per-gpu cpus-per-task dependency exclude export format gpu-bind gpus
gpus-per-node gpus-per-task hostfile ipc kill-on-bad-exit map-by mem mpi net nodes no-kill ntasks ntasks-per-node nv
output-filename overlap partition requeue resv-ports shm-size signal tag-output time user wrap distribution het-group
nodelist gres mem-per-cpu-bind container-image pytorch
""".split())

# A line that a reader would type; "ddprun: " and "ddprun n2: " begin what ddprun prints.
COMMAND = re.compile(r"^\$? ?(?:srun |sbatch |ddpctl |ddprun (?!\w*:|\|))", re.MULTILINE)


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.update(filter(None, (attributes.get("id"), attributes.get("name"))))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        source = attributes.get("src") or (attributes.get("href") if tag == "link" else None)
        if source:
            self.loads.append(source)


def wrong_links(site):
    parsed = {path.resolve(): Page(path.read_text()) for path in site.rglob("*.html")}
    for path, page in parsed.items():
        name = path.relative_to(site.resolve())
        if name.name == "404.html":
            continue  # what it names counts from the root of a server
        for source in page.loads:
            if re.match(r"(?:https?:)?//", source):
                yield f"{name} loads {source} from the network"
            elif not source.startswith("data:") and not (path.parent / source.split("?")[0]).exists():
                yield f"{name} loads {source}, which is not there"
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = urllib.parse.unquote(link).partition("#")
            target = (path.parent / file).resolve() if file else path
            target = target / "index.html" if target.is_dir() else target
            if target not in parsed and not target.exists():
                yield f"{name}: no file for {link}"
            elif anchor and target in parsed and anchor not in parsed[target].ids:
                yield f"{name}: no anchor for {link}"


def known_options(programs):
    texts = [[programs / "ddprun", "--help-all"], [programs / "ddpctl", "--print-man"],
             [programs / "ddprun-rendezvous", "--help"]]
    printed = "".join(subprocess.run(call, check=True, capture_output=True, text=True).stdout for call in texts)
    return set(re.findall(r"--([a-z][a-z0-9-]*)", printed.replace("\\-", "-")))


def wrong_options(pages, programs):
    known = known_options(programs) | FOREIGN
    for path in pages.rglob("*.md"):
        if not (path.parent.name in ("how-to", "moving") and path.name != "torchrun.md" or path.parent == pages):
            continue  # what is made, or belongs to the repository, has tests of its own
        text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        for code in re.findall(r"`([^`]+)`", re.sub(r"^##### .*$", "", text, flags=re.MULTILINE)):
            for option in re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", code):
                if option not in known:
                    yield f"{path.relative_to(pages)}: --{option} is no option"


def wrong_blocks(pages):
    for path in pages.rglob("*.md"):
        for line, language, title, _, text in blocks.blocks(path.read_text()):
            if language == "text" and COMMAND.search(text) and path.name not in ("ddprun-rendezvous.md", "protocol.md"):
                yield f"{path.relative_to(pages)}:{line}: a command in a block of text: nobody runs it"


def main(pages, site, programs):
    pages, site, programs = map(pathlib.Path, (pages, site, programs))
    wrong = [*wrong_links(site), *wrong_options(pages, programs), *wrong_blocks(pages)]
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
