#!/usr/bin/env python3
"""What counts as a fixed sleep, and that a folder with one more than its limit is named, as is a limit that is too high."""
import unittest

from sleeps import seconds_in, verdict


class Sleeps(unittest.TestCase):
    def test_waits_of_a_given_length_count_in_each_language(self):
        for kind, line, found in (
                (".sh", "sleep 2 # the lease once more", [2]), (".sh", "x() { sleep 0.3; }; sleep .5", [0.3, 0.5]),
                (".sh", "python3 -c 'import time; time.sleep(1)'", [1]), (".py", "    time.sleep(0.2)", [0.2]),
                (".cc", "::usleep(500'000);", [0.5]), (".cc", "::sleep(2);", [2]),
                (".cc", "std::this_thread::sleep_for(std::chrono::milliseconds{2500});", [2.5]),
                (".cc", "std::this_thread::sleep_for(seconds(3));", [3]), (".cc", "sleep_for(150ms);", [0.15])):
            self.assertEqual(seconds_in(kind, line), found, line)

    def test_polls_workers_and_variables_do_not(self):
        for kind, line in ((".sh", "until [[ -e go ]]; do sleep 0.05; done"), (".sh", "exec sleep 300"),
                           (".sh", 'sleep "$seconds"'), (".sh", "asleep 2"), (".py", "time.sleep(seconds)"),
                           (".cc", "::usleep(10'000)"), (".cc", "sleep_for(std::chrono::milliseconds{5})"),
                           (".cc", "timer.expires_after(2s)")):
            self.assertEqual(seconds_in(kind, line), [], line)

    def test_a_limit_may_only_fall(self):
        self.assertIsNone(verdict("e2e", 3, 3))
        self.assertIn("4 fixed sleeps, more than the 3 of sleeps_e2e in tests/data/limits.txt", verdict("e2e", 4, 3))
        self.assertIn("2 fixed sleeps, fewer than the 3 of sleeps_e2e in tests/data/limits.txt: lower", verdict("e2e", 2, 3))


if __name__ == "__main__":
    unittest.main()
