"""Plants one bug of mutations.txt after the other in a copy of ddprun, and sees a test of warm starts fail.

mutations.py DDPRUN PYTHON FOLDER [NAME…]: all, or only these. The files of warm/bootstrap are in the program as they
are, so a shorter text can take the place of one there without a compiler. Ends with 1 if a bug is not found.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BOOTSTRAP = os.path.join(HERE, "../../../warm/bootstrap")


def read_list():
    """NAME: (file, test, old text, new text)."""
    found = {}
    with open(HERE + "/mutations.txt") as file:
        text = re.sub(r"^#.*\n", "", file.read(), flags=re.M)
    for block in filter(str.strip, text.split("\n\n")):
        head, old, new = block.strip().split("\n")
        name, file, test = re.fullmatch(r"([a-z-]+): (\S+), (\S+)", head).groups()
        found[name] = file, test, old[2:], new[2:]
    return found


def mutant(ddprun, folder, file, old, new):
    """A copy of the program with the change, in this folder."""
    with open(os.path.join(BOOTSTRAP, file), "rb") as source:
        before = source.read()
    changed = before.replace(old.encode(), new.encode().ljust(len(old.encode())))
    with open(ddprun, "rb") as program:
        whole = program.read()
    if before.count(old.encode()) != 1 or len(changed) != len(before) or whole.count(before) != 1:
        raise ValueError("%s: not once in %s, or its change is longer, or the program has another file" % (old, file))
    os.makedirs(folder)
    with open(folder + "/ddprun", "wb") as program:
        program.write(whole.replace(before, changed))
    os.chmod(folder + "/ddprun", 0o755)
    return folder + "/ddprun"


def is_found(setup, name, mutation):
    ddprun, python, folder = setup
    file, test, old, new = mutation
    folder += "/" + name
    changed = mutant(ddprun, folder, file, old, new)
    if test.endswith(".sh"):
        command = ["bash", HERE + "/../" + test]
    else:
        command = [sys.executable, HERE + "/suite.py", changed, python, folder + "/cases", "--only=" + test,
                   HERE + "/cases/state.txt", HERE + "/cases/programs.txt"]
        os.makedirs(folder + "/cases")
    done = subprocess.run(command, env={**os.environ, "DDPRUN_BIN": folder}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # Not one that could not be played at all.
    why = re.search(r"^    .*|^FAILED: .*", done.stdout, flags=re.M)
    return done.returncode == 1 and bool(why), (why.group() if why else done.stdout[-500:]).strip()[:200]


def main():
    setup, names, known = sys.argv[1:4], sys.argv[4:], read_list()
    names, missed = names or list(known), []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, (found, why) in zip(names, pool.map(lambda each: is_found(setup, each, known[each]), names)):
            print("%s: %s: %s" % (name, "found" if found else "NOT FOUND", why), flush=True)
            missed += [] if found else [name]
    print("%d of %d bugs are found" % (len(names) - len(missed), len(names)))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
