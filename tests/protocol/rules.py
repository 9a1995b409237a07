#!/usr/bin/env python3
"""Each rule of rendezvous/PROTOCOL.md has a test with its number, and each such test has its rule.

  tests/protocol/rules.py [ROOT]

A rule is a line "- **3a** The leader's ..." of the page; it begins with its owner. Its tests are heads "rule 3a: ..."
in tests/protocol/scripts, and tests of GoogleTest called Rule3a_... Each numbered part of the page ("### Rule 3") has
at least one script. Ends with 1 and a line for each fault.
"""
import re
import sys
from pathlib import Path

OWNERS = "node keeper leader service ledger".split()


def rules_of(page):
    """The rules of the page, each with its sentence; and the numbers of its parts."""
    rules, parts, faults = {}, re.findall(r"^### Rule (\d+):", page, re.M), []
    for number, letter, sentence in re.findall(r"^- \*\*(\d+)([a-z]?)\*\* (.*)$", page, re.M):
        name = number + letter
        if name in rules:
            faults.append(f"rule {name} is on the page twice")
        if number not in parts:
            faults.append(f"rule {name} is in no part 'Rule {number}'")
        first = re.match(r"The (?:dormant )?(\w+)", sentence)
        if not first or first[1] not in OWNERS:
            faults.append(f"rule {name} does not begin with its owner ({', '.join(OWNERS)}): {sentence}")
        rules[name] = sentence
    return rules, parts, faults


def tests_of(root):
    """The rules that tests name, each with the places."""
    scripts, others = {}, {}
    for path in sorted((root / "tests/protocol/scripts").glob("*.txt")):
        for name in re.findall(r"^rule (\w+):", path.read_text(), re.M):
            scripts.setdefault(name, []).append(path.name)
            if path.name != f"rule_{int(re.match('[0-9]+', name)[0]):02}.txt":
                others.setdefault("?", []).append(f"{path.name} has rule {name}")
    for path in sorted((root / "tests").rglob("*_test.cc")):
        for name in re.findall(r"\bTEST(?:_F|_P)?\(\s*\w+,\s*Rule(\d+[a-z])_", path.read_text()):
            others.setdefault(name, []).append(path.name)
    return scripts, others


def faults_of(root):
    rules, parts, faults = rules_of((root / "rendezvous/PROTOCOL.md").read_text())
    scripts, others = tests_of(root)
    faults += others.pop("?", [])
    for name in rules:
        if name not in scripts and name not in others:
            faults.append(f"rule {name} has no test: {rules[name]}")
    for name, places in list(scripts.items()) + list(others.items()):
        if name not in rules:
            faults.append(f"{', '.join(places)} tests rule {name}, which the page does not have")
    for number in parts:
        if not any(re.fullmatch(number + "[a-z]", name) for name in scripts):
            faults.append(f"rule {number} has no script tests/protocol/scripts/rule_{int(number):02}.txt")
    if len(rules) < 100:
        faults.append(f"only {len(rules)} rules found: is the page still written as this test reads it?")
    return faults


if __name__ == "__main__":
    found = faults_of(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
