"""Whether what has a wrapper in base/ is called there only: sandboxes refuse these calls, and the wrapper has another way.

    python3 tests/one_place.py ROOT
"""
import os
import re
import sys

# What may not stand in the code, and where it may: with what to write elsewhere.
CALLS = [
    (r"std::random_device|\bgetrandom\(|\bgetentropy\(", "base/system/random_bytes.h", "random_bytes(), random_number()"),
    (r"\bremove_all\(", "base/system/remove_folder.cc", "remove_folder()"),
]
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
                        if path != place and re.search(call, line.split("//")[0]):
                            wrong.append(f"{path}:{number}: call {instead} of {place}")
    print("\n".join(wrong))
    return len(wrong) > 0


sys.exit(main())
