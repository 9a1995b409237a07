#!/usr/bin/env python3
"""What ddprun is made of without the products beside its core: core_closure.py BUILD, a folder of the preset `core`.

Reads what the compiler has read for each object (ninja's record). Fails if there is a header of gRPC, Python or MPI
among it, or a file of a product; holds the lines of our own files against tests/data/limits.txt, and prints how many
of these are code, and in which folders.
"""
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import limits

ROOT = limits.FILE.parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench"))
from lines_of_code import lines_of_code  # noqa: E402

# The headers that declare a ledger in etcd are the core's: without_etcd.cc stands in for it.
FOREIGN = re.compile(r"/(?:grpc|grpcpp|absl|google/protobuf/.*grpc|python3[^/]*|mpi[^/]*)/|\.grpc\.pb\.|/Python\.h$"
                     r"|/(?:etcd|control)\.pb\.h$")
PRODUCT = re.compile(r"^(?:operator|daemon|warm|diagnosis|agent/pmi)/"
                     r"|^rendezvous/ledger/etcd_(?:client|channel|series)")
OURS = re.compile(r"\.(?:h|cc|proto)$")


def files_read(record):
    """The files that `ninja -t deps` names: each object, then what was read for it, indented."""
    return {line.strip() for line in record.splitlines() if line.startswith("    ")}


def own_files(files, build):
    """Those of the repository, relative to its root; generated ones are left out."""
    own = set()
    for name in files:
        path = (build / name).resolve()
        if path.is_relative_to(ROOT) and not path.is_relative_to(build) and OURS.search(name):
            own.add(str(path.relative_to(ROOT)))
    return own


def intruders(files, own):
    """What the core must not need, one text each."""
    return sorted({name for name in files if FOREIGN.search(name)} | {name for name in own if PRODUCT.match(name)})


def main():
    build = Path(sys.argv[1]).resolve()
    files = files_read(subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True,
                                      check=True).stdout)
    own = own_files(files, build)
    if len(own) < 100:
        sys.exit(f"{build}: only {len(own)} files were read for ddprun; build it first")
    if found := intruders(files, own):
        sys.exit("the core reads what is not its own:\n" + "\n".join(found))
    paths = sorted(own | {f"proto/{name}.proto" for name in ("agent_link", "agent_link_parts")})
    lines = Counter()
    for name in paths:
        lines[name.split("/")[0]] += (ROOT / name).read_text().count("\n")
    code = sum(lines_of_code(ROOT / name) for name in paths)
    print(f"{len(paths)} files, {sum(lines.values()):,} lines, {code:,} of them code: " +
          ", ".join(f"{folder} {count:,}" for folder, count in lines.most_common()))
    return limits.check({"lines_core": sum(lines.values())})


if __name__ == "__main__":
    sys.exit(main())
