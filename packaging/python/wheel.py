#!/usr/bin/env python3
"""Writes the wheel of ddprun: the programs, their manual pages and the module `ddprun`. The programs are static, so the
wheel is for every Linux with this processor. The same files give the same bytes.

    wheel.py VERSION PROCESSOR FOLDER TO     # FOLDER has bin/ and share/; SOURCE_DATE_EPOCH is the time

Prints the path of the wheel, which is written to the folder TO."""
import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

version, processor, folder, to = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
here = pathlib.Path(__file__).resolve().parent
repository = here.parent.parent
name = f"ddprun-{version}"
# Both C libraries of Linux: the programs use neither.
tags = [f"{system}_{processor}" for system in ("manylinux2014", "musllinux_1_1")]

METADATA = f"""Metadata-Version: 2.1
Name: ddprun
Version: {version}
Summary: torchrun in C++, made for Slurm: starts the workers of a distributed training, and again when one fails
License: Apache-2.0
Requires-Python: >=3.7
Classifier: Operating System :: POSIX :: Linux
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

"""
WHEEL = "Wheel-Version: 1.0\nGenerator: ddprun\nRoot-Is-Purelib: false\n"
WHEEL += "".join(f"Tag: py3-none-{tag}\n" for tag in tags)

files = {}  # path in the wheel: its bytes, and whether they are a program
for program in sorted((folder / "bin").iterdir()):
    files[f"{name}.data/scripts/{program.name}"] = (program.read_bytes(), True)
for page in sorted((folder / "share/man/man1").iterdir()):
    files[f"{name}.data/data/share/man/man1/{page.name}"] = (page.read_bytes(), False)
for source in sorted((here / "ddprun").iterdir()):
    if source.suffix in (".py", ".typed"):
        text = source.read_bytes().replace(b"@VERSION@", version.encode())
        files[f"ddprun/{source.name}"] = (text, False)
readme = (here / "README.md").read_text()
files[f"{name}.dist-info/METADATA"] = ((METADATA + readme).encode(), False)
files[f"{name}.dist-info/WHEEL"] = (WHEEL.encode(), False)
files[f"{name}.dist-info/LICENSE"] = ((repository / "LICENSE").read_bytes(), False)
files[f"{name}.dist-info/THIRD_PARTY"] = ((folder / "share/doc/ddprun/THIRD_PARTY").read_bytes(), False)


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


record = f"{name}.dist-info/RECORD"
lines = [f"{path},{digest(content)},{len(content)}\n" for path, (content, _) in files.items()]
files[record] = ("".join(lines + [f"{record},,\n"]).encode(), False)

when = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]  # zip knows no time before 1980
wheel = to / f"{name}-py3-none-{'.'.join(tags)}.whl"
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
    for path, (content, program) in files.items():
        entry = zipfile.ZipInfo(path, when)
        entry.create_system = 3  # Unix, whose permissions follow
        entry.external_attr = (0o100755 if program else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)
print(wheel)
