"""Whether numbers in texts for users are those of the code.

    python3 tests/told_numbers.py ROOT

Each row of TOLD has a constant (file, pattern of its value) and the texts that tell it, with {} for the number. Each
number with a unit in the help of an option must be in a row, so a new one needs its constant here.
"""
import os
import re
import sys

FAILURE, WORKERS = "launcher/options/option_rows_failure.cc", "launcher/options/option_rows_workers.cc"
COMMANDS = "operator/ddpctl/ctl_commands.cc"
TOLD = [
    ("agent/parts/headway.h", r"kCallsNoStore = std::chrono::seconds{(\d+)}",
     [(FAILURE, "or have run for {} s without it"), ("slurm/FROM_TORCHRUN.md", "or have run for {} s without it")]),
    ("rendezvous/rules/restart_policy.cc", r"kAutoRestarts \? (\d+)",
     [(FAILURE, "auto: {} times"), ("slurm/FROM_TORCHRUN.md", "at most {} times")]),
    (FAILURE, r"milliseconds\((\d+)000\)\)", [(FAILURE, "give {} second or more")]),
    ("launcher/report/tell_failure.cc", r"kProgramLimit = std::chrono::seconds{(\d+)}",
     [(FAILURE, "is killed after {} s")]),
    ("agent/output/collapsed_lines.h", r"kWindow = std::chrono::milliseconds{(\d+)}",
     [(WORKERS, "print within {} ms is shown once")]),
    ("agent/output/console.h", r"kLimit = std::size_t{(\d+)} << 20", [(WORKERS, "when {} MiB wait for a slow console")]),
    ("agent/output/recent_output.h", r"kKept = std::size_t{(\d+)} << 10", [(COMMANDS, "among the {} KiB that")]),
]
# Sums, which no single constant has.
SUMS = [("launcher/job/event_program.h", r"(?:call|due|last) = std::chrono::seconds{(\d+)}",
         [(FAILURE, "at its end, for {} s at most")])]
ROWS = [os.path.join("launcher/options", "option_rows_%s.cc" % part) for part in
        ("failure", "meeting", "other", "workers")] + [COMMANDS]
NUMBER = re.compile(r"\b\d[\d,]* (?:s|ms|min|minutes?|seconds?|KiB|MiB|GiB|times|lines)\b")


def joined(path):
    """A text without line breaks; neighbouring literals of C++ are one."""
    with open(path, encoding="utf-8") as file:
        return " ".join(re.sub(r'"\s*\n\s*"', "", file.read()).split())


def main():
    os.chdir(sys.argv[1])
    wrong, told = [], set()
    for path, pattern, texts in TOLD + SUMS:
        found = re.findall(pattern, joined(path))
        if not found or (len(found) > 1 and (path, pattern, texts) in TOLD):
            wrong.append(f"{path}: {pattern} is there {len(found)} times")
            continue
        number = str(sum(map(int, found)))
        for where, sentence in texts:
            text = sentence.replace("{}", number)
            told.update(NUMBER.findall(text))
            if text not in joined(where):
                wrong.append(f"{where}: not \"{text}\", as {path} has it")
    for path in ROWS:
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', joined(path)):
            for number in NUMBER.findall(literal):
                if number not in told:
                    wrong.append(f"{path}: \"{number}\" is in no row of tests/told_numbers.py: \"{literal[:80]}\"")
    print("\n".join(wrong))
    return len(wrong) > 0


sys.exit(main())
