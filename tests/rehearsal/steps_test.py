#!/usr/bin/env python3
"""Lines of programs, as people print them, and the steps that are seen in them."""
import re
import unittest

import modules  # noqa: F401
from ddprun_rehearsal.steps import Reader, values_in


def read(*lines, pattern=None):
    reader = Reader(re.compile(pattern) if pattern else None)
    reader.line("ddprun: generation 0: 1 node, 2 workers", 0.0)
    for number, line in enumerate(lines):
        reader.line(line, number + 1.0)
    return reader


def steps(*lines, **given):
    return [one.step for one in read(*lines, **given).seen()]


class Steps(unittest.TestCase):
    def test_usual_spellings_are_found(self):
        for line in ("step 17", "Step: 17/100", "[default0]:step=17 loss=0.5", "global_step 17", "iter 17: loss 2.1",
                     "iteration 17", " 17%|##   | 17/100 [00:01<00:05, 12.1it/s, loss=0.5]",
                     "{'step': 17, 'loss': 0.5}"):
            self.assertEqual(steps(line), [17], line)

    def test_epoch_counts_where_no_step_is_printed(self):
        self.assertEqual(steps("Epoch 3: loss 0.52", "Epoch 4: loss 0.50"), [3, 4])

    def test_steps_that_begin_again_in_each_epoch_keep_rising(self):
        seen = steps(*("Epoch %d step %d" % (epoch, step) for epoch in (0, 1, 2) for step in range(4)))
        self.assertEqual(seen, list(range(12)))

    def test_a_resumed_epoch_is_counted_like_the_first_time(self):
        reader = read("Epoch 1 step 0", "Epoch 1 step 1", "Epoch 2 step 0", "Epoch 2 step 1")
        reader.line("ddprun: generation 1: 1 node, 2 workers", 9.0)
        reader.line("Epoch 2 step 1", 10.0)
        self.assertEqual((reader.seen()[-1].step, reader.seen()[-1].attempt), (3, 1))

    def test_given_pattern_wins(self):
        self.assertEqual(steps("step 3 at 17 done", pattern=r"at (\d+) done"), [17])

    def test_reported_progress_counts_where_nothing_is_printed(self):
        reader = read("ddprun: generation 0 has run for 2.0 s, step 21, newest snapshot 20; 0 restarts so far")
        self.assertEqual((reader.newest(), reader.source()), (21, "reported progress"))

    def test_newest_is_what_all_ranks_have_reached(self):
        reader = read("[default0]:step 5", "[default1]:step 3")
        self.assertEqual(reader.newest(), 3)

    def test_values_are_numbers_with_names_and_no_times(self):
        self.assertEqual(values_in("step 17 loss 0.52 lr=1e-4 time 3.1 tokens/s 12 acc: 0.9"),
                         {"loss": "0.52", "lr": "1e-4", "acc": "0.9"})


if __name__ == "__main__":
    unittest.main()
