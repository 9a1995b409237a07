"""Compares two traces of strace -f, of a job without and with a fork server: strays.py COLD WARM OWN SERVER.

What differs is the server's own: files below folders that the pattern OWN names, its socket to ddprun, and the start
of the programs whose command line SERVER names. Each file that is written, made, removed or renamed, each
socket and address, and each program is counted. Of files that are only read, the names are compared: the server reads
those of libraries once more.
"""
import collections
import re
import sys

_MAKES = ("mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "link", "linkat",
          "symlink", "symlinkat", "truncate", "mknod", "mknodat", "chmod", "fchmodat")
# Names and numbers that are others in each job.
_NUMBERS = ((r"/proc/\d+", "/proc/N"),
            (r"(sin6?_port=htons\(|fd/|\.part-)\d+", r"\1N"), (r"/ddprun_\w{6}\b", "/ddprun_N"),
            (r"/ddprun/(\.new-|[0-9a-f]{16}~)\d+", r"/ddprun/\1N"), (r"/[0-9a-f]{16}~N", "/JOB~N"),
            (r"/tmp[a-z0-9_]{8}\b", "/tmpN"), (r"(?<=/)[a-z0-9_]{8}(?=\")", "N"))


def _lines(name):
    """Whole calls, also those that another process has interrupted."""
    begun = {}
    with open(name, errors="replace") as file:
        for line in file:
            pid, _, rest = line.strip().partition(" ")
            rest = rest.strip()
            if rest.endswith("<unfinished ...>"):
                begun[pid] = rest[:-len("<unfinished ...>")]
                continue
            again = re.match(r"<\.\.\. \w+ resumed>", rest)
            yield begun.pop(pid, "") + rest[again.end():] if again else rest


def _seen(name, own):
    counted, read = collections.Counter(), set()
    for line in _lines(name):
        call, _, rest = line.partition("(")
        # A name below a folder that is open (strace -y).
        rest = re.sub(r'[\w-]+<([^>]*)>, "(?!/)', r'"\1/', rest)
        for pattern, text in _NUMBERS:
            rest = re.sub(pattern, text, rest)
        words = re.findall(r'"((?:[^"\\]|\\.)*)"', rest)
        failed = re.search(r"= -1 E\w+", rest)
        if failed and not failed.group().endswith(("EACCES", "EPERM")):
            continue
        if call in ("openat", "open", "creat"):
            file = words[0] if words else ""
            if re.search(own, file) or file.startswith("/proc/"):
                continue
            if re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", rest) or call == "creat":
                counted["writes " + file] += 1
            else:
                read.add(file)
        elif call in _MAKES and not all(re.search(own, each) for each in words):
            counted["%s %s" % (call, " ".join(words))] += 1
        elif call == "execve":
            counted["program " + " ".join(words[1:])] += 1
        elif call in ("socket", "bind", "connect"):
            counted["%s %s" % (call, re.sub(r"^\d+(<[^>]*>)?, |\) *= .*", "", rest).strip())] += 1
    return counted, read


def main():
    (cold, cold_read), (warm, warm_read) = (_seen(each, sys.argv[3]) for each in sys.argv[1:3])
    # The probe and the server itself, once more where it had to leave out an import.
    servers = [each for each in warm if each.startswith("program ") and re.search(sys.argv[4], each) and
               0 < warm[each] - cold[each] <= 2]
    found = ["%s: %d times, %d without a server" % (each, warm[each], cold[each])
             for each in sorted({*cold, *warm}) if cold[each] != warm[each] and each not in servers]
    found += ["reads " + each for each in sorted(warm_read - cold_read)]
    same = "%d kinds of calls and %d files that are read: all the same" % (len(cold), len(cold_read))
    print("\n".join(found[:40]) or same)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
