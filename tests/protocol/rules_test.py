#!/usr/bin/env python3
"""rules.py notices each kind of fault: in a copy of the page and the tests, one thing is wrong at a time."""
import shutil
import sys
import tempfile
from pathlib import Path

from rules import faults_of

ROOT = Path(__file__).resolve().parents[2]
CHANGES = [
    ("rendezvous/PROTOCOL.md", "- **3b** The leader's H only grows.", "", "tests rule 3b, which"),
    ("rendezvous/PROTOCOL.md", "- **3b** The leader's H", "- **3b** H", "rule 3b does not begin with its owner"),
    ("rendezvous/PROTOCOL.md", "- **3b** ", "- **3a** ", "rule 3a is on the page twice"),
    ("tests/protocol/scripts/rule_03.txt", "rule 3b:", "rule 3z:", "rule 3b has no test"),
    ("tests/protocol/scripts/rule_03.txt", "rule 3b:", "rule 4a:", "rule_03.txt has rule 4a"),
    ("tests/rendezvous/parts/claim_test.cc", "Rule7d_", "", "rule 7d has no test"),
    ("tests/rendezvous/parts/claim_test.cc", "Rule7d_", "Rule7x_", "tests rule 7x, which"),
]


def copy_of(folder):
    (folder / "rendezvous").mkdir()
    shutil.copy(ROOT / "rendezvous/PROTOCOL.md", folder / "rendezvous")
    for path in list((ROOT / "tests").rglob("*_test.cc")) + list((ROOT / "tests/protocol/scripts").glob("*.txt")):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    copy_of(folder)
    missed = faults_of(folder)
    for path, old, new, expected in CHANGES:
        text = (folder / path).read_text()
        assert text.count(old) == 1, (path, old)
        (folder / path).write_text(text.replace(old, new))
        if not any(expected in fault for fault in faults_of(folder)):
            missed.append(f"not noticed: {expected}")
        (folder / path).write_text(text)
    print("\n".join(missed), end="\n" if missed else "")
    sys.exit(bool(missed))
