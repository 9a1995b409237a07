#!/usr/bin/env python3
"""The file of limits: its form, that each limit is looked at by a test, and that a count above its limit fails."""
import re
import subprocess
import sys
import unittest

import limits

TESTS = limits.FILE.parents[1]


class Limits(unittest.TestCase):
    def test_the_file_can_be_read_and_every_limit_is_looked_at(self):
        sources = "".join(path.read_text(errors="replace") for kind in ("*.py", "*.sh", "*.cc")
                          for path in TESTS.rglob(kind))
        for name in limits.parse(limits.FILE.read_text()):
            # By its name, or in a script by a name that begins so: "size_${program}", f"sleeps_{folder}".
            looked_at = f'"{name}"' in sources or re.search(f'"{name.split("_")[0]}_[{{$]', sources)
            self.assertTrue(looked_at, f"no test looks at the limit {name}")

    def test_a_count_above_its_limit_fails_in_one_line_with_both_numbers(self):
        known = {"calls": (100, "system calls")}
        line = "FAILED: system calls: 101, more than the limit of 100 (calls in tests/data/limits.txt)"
        self.assertEqual(limits.verdict("calls", 101, known), (line, False))
        self.assertEqual(limits.verdict("calls", 100, known), ("system calls: 100, at most 100", True))

    def test_a_limit_that_guards_nothing_any_more_is_told(self):
        text, within = limits.verdict("calls", 50, {"calls": (100, "system calls")})
        self.assertTrue(within)
        self.assertIn("could be lower", text)

    def test_check_ends_with_1_if_one_is_over(self):
        name, (limit, _) = next(iter(limits.parse(limits.FILE.read_text()).items()))
        for value, code in ((limit, 0), (limit + 1, 1)):
            program = f"import limits; limits.check({{'{name}': {value}}})"
            run = subprocess.run([sys.executable, "-c", program], cwd=TESTS / "counts", capture_output=True, text=True)
            self.assertEqual(run.returncode, code, run.stdout + run.stderr)

    def test_what_cannot_be_read_is_named_with_its_line(self):
        for text in ("a_b\n", "a_b many  # what\n", "a_b 5\n", "# fine\na_b 5  # what\na_b 6  # again\n"):
            with self.assertRaisesRegex(ValueError, "line [13]"):
                limits.parse(text)


if __name__ == "__main__":
    unittest.main()
