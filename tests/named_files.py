"""Whether what comments and pages say about "where" is right.

    python3 tests/named_files.py ROOT

- A source file that a comment or a page names exists: from the root, from the folder that names it or from one above,
  or as the end of a path in the tree. A heading of our own, or a file of a program that is the example, is in FOREIGN.
- In a header, a comment that begins with "NAME.cc: " stands above declarations: each of these functions is defined in
  NAME.cc, of the same folder, or in the class itself.
- "Where:" of a page names a unit and, in parentheses, what it holds: `lease` (`Lease::confirm`). A unit is NAME.h with
  NAME.cc, in agent/ or in rendezvous/ if the page says so. The same for a path: `a/b.h` (`kHold`).
- A link of a README leads to a file, and to a heading that is there. (docs_pages looks at the links of the site.)
"""
import os
import re
import subprocess
import sys

# Files of the system and of other projects, and of programs that a comment or a page takes for an example.
FOREIGN = set("""
    nccl.h cublas_v2.h slurm.h sysexits.h netinet/tcp.h linux/magic.h linux/inet_diag.h cpython/code.h
    cpython/unicodeobject.h pycore_interp.h pycore_frame.h pycore_debug_offsets.h Include/internal/pycore_runtime.h
    Include/internal/pycore_debug_offsets.h src/core/plugin_registry/grpc_plugin_registry_extra.cc _noextra.cc
    tcp_posix.cc this_release.cc ddprun-config.cmake
    eval.py script.py lines.py tail_log.py site-packages/x.py NAME.h NAME.cc FILE.cu
""".split())
FILE = re.compile(r"(?<![\w./~$<>{}*-])((?:[\w-]+/)*[\w-]+\.(?:h|cc|cmake|proto|py|sh|cu))(?![\w/*-]|\.\w)")
READ = (".h", ".cc", ".cu", ".proto", ".cmake", ".md", ".py", ".sh", "CMakeLists.txt")


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def for_people(path, text):
    """Lines of comments, or of a page without its blocks, with their numbers."""
    fenced = False
    begin = "//" if path.endswith((".h", ".cc", ".cu", ".proto")) else "#"
    for number, line in enumerate(text.splitlines(), 1):
        if path.endswith(".md"):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced:
                yield number, line
            continue
        at = line.find(begin + " ")
        if at == 0 or (at > 0 and line[at - 1] == " "):
            yield number, line[at:]


def missing_files(files):
    ends = set()
    for each in files:
        parts = each.split("/")
        ends.update("/".join(parts[i:]) for i in range(len(parts)))
    for path in files:
        if path.endswith(READ):
            for number, line in for_people(path, text_of(path)):
                for name in FILE.findall(line):
                    if name not in ends | FOREIGN:
                        yield f"{path}:{number}: there is no {name}"


def misplaced_functions(files):
    for path in files:
        where = None
        for number, line in enumerate(text_of(path).splitlines() if path.endswith(".h") else [], 1):
            heading = re.match(r"\s+// (\w+\.cc): ", line)
            if heading or re.fullmatch(r"|};|\s+// (----.*|[a-z ]+)", line):
                where = heading and os.path.join(os.path.dirname(path), heading[1])
                continue
            declared = re.match(r"    (?! )(?!//)[^={]*?\b(\w+)\([^{]*$", line)
            if where and declared and where in files:
                if not re.search(rf"^\S.*::{declared[1]}\(", text_of(where), re.M):
                    yield f"{path}:{number}: {declared[1]}() is not defined in {where}"


def misplaced_words(files):
    units = {}
    for path in files:
        if path.endswith((".h", ".cc")) and not path.startswith(("tests/", "trainer/", "examples/")):
            units.setdefault(os.path.splitext(os.path.basename(path))[0], []).append(path)
    for page in files:
        if not page.endswith(".md"):
            continue
        for name, words in re.findall(r"`([\w/-]+/[\w-]+\.(?:h|cc))` \(((?:`\w+`(?:, )?)+)\)", text_of(page)):
            for word in re.findall(r"`(\w+)`", words) if name in files else []:
                if not re.search(rf"\b{word}\b", text_of(name)):
                    yield f"{page}: {word} is not in {name}"
        for where in re.findall(r"\*Where:\*(.*?)\.(?:\s|\Z)", text_of(page), re.S):
            where = " ".join(where.split())
            for name, of, words in re.findall(r"`([\w/.:]+)`(?: of (?:the )?(\w+))?(?: \(([^)]*)\))?", where):
                places = units.get(os.path.splitext(os.path.basename(name))[0], [])
                if of in ("agent", "rendezvous"):
                    places = [each for each in places if each.startswith(of)]
                text = "\n".join(map(text_of, places))
                if "::" in name:  # a function, of whatever unit
                    words, text = "`" + name + "`", "\n".join(text_of(each) for each in sum(units.values(), []))
                elif not places:
                    yield f"{page}: Where: there is no unit {name}"
                for word in re.findall(r"`([\w:]+)`", words):
                    if not re.search(rf"\b{word.split('::')[-1]}\b", text):
                        yield f"{page}: Where: {word} is not in {name}"


def anchors(path):
    """The headings of a page as GitHub names them in links, or the site."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text_of(path), flags=re.S | re.M), re.M)
    names = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return {re.sub("-+", "-", name) for name in names} if path.startswith("docs/pages/") else names


def broken_links(files):
    for page in files:
        if not page.endswith(".md") or page.startswith("docs/pages/"):
            continue
        for line, text in for_people(page, text_of(page)):
            for target, anchor in re.findall(r"\]\((?!\w+:)([^()\s#]*)(?:#([^()\s]*))?\)", text):
                path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
                if not os.path.exists(path):
                    yield f"{page}:{line}: the link leads to {path}, which is not there"
                elif anchor and path.endswith(".md") and anchor not in anchors(path):
                    yield f"{page}:{line}: {path} has no heading #{anchor}"


def main():
    os.chdir(sys.argv[1])
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    files = [each for each in listed.stdout.splitlines() if os.path.exists(each)]
    wrong = [*missing_files(files), *misplaced_functions(files), *misplaced_words(files), *broken_links(files)]
    print("\n".join(wrong))
    return len(wrong) > 0


sys.exit(main())
