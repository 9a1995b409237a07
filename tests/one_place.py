"""Whether what has a wrapper in base/ is called there only: sandboxes and limits refuse these calls, and the wrapper has
another way or an error; or each caller had its own loop around them.

    python3 tests/one_place.py ROOT
"""
import os
import re
import sys

# What may not stand in the code, and where it may: with what to write elsewhere.
CALLS = [
    (r"std::random_device|\bgetrandom\(|\bgetentropy\(", "base/system/random_bytes.h", "random_bytes(), random_number()"),
    (r"\bremove_all\(", "base/system/remove_folder.cc", "remove_folder()"),
    (r"\bstd::j?thread\b|\bstd::async\b|\bpthread_create\(", "base/system/start_thread.h", "start_thread()"),
    (r"\beventfd\(|\bEFD_|[sS]ys/eventfd", "base/system/wake_pipe.h", "WakePipe"),
    (r"(?<![\w>:.])(::)?p?write\((\w*(fd|file)s?_?\b|\w+(\[\d\])?\.get\(\)|\w+_FILENO|number\(\))",
     "base/system/write_all.cc", "write_all()"),
    (r"awaitable_operators", "base/loop/ended_by.h", "ended_by()"),
]
# Who may, all the same. write(): one that must not be repeated, because it may be lost, or is short enough. Operators of
# awaitables: no deadline.
ALLOWED = {
    "write_all()": {
        "base/system/out_of_resources.cc", "base/system/wake_pipe.h", "agent/output/output_target.cc",
        "keeper/process/keeper_process.cc", "diagnosis/recorder/nccl_pipes.cc", "trainer/worker/progress.cc",
    },
    "ended_by()": {"operator/page/page_server.cc"},
}
# What is no product: its programs may call what they like.
OTHERS = re.compile(r"tests|build|\.")


def main():
    os.chdir(sys.argv[1])
    wrong = []
    for product in filter(os.path.isdir, os.listdir()):
        for folder, _, names in os.walk(product) if not OTHERS.match(product) else ():
            for path in (os.path.join(folder, name) for name in names if name.endswith((".h", ".cc", ".cu"))):
                with open(path, encoding="utf-8") as file:
                    lines = file.read().splitlines()
                for call, place, instead in CALLS:
                    for number, line in enumerate(lines, 1):
                        if path in (place, *ALLOWED.get(instead, ())):
                            continue
                        if re.search(call, line.split("//")[0]):
                            wrong.append(f"{path}:{number}: call {instead} of {place}")
    print("\n".join(wrong))
    return len(wrong) > 0


sys.exit(main())
