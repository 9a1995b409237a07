#!/usr/bin/env python3
"""The rules of the soak: which faults a seed draws, and what counts as growth."""
import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import soak_rules
from soak_rules import Plan, Watched


def watched(memory, descriptors=lambda restart: 12, restarts=60):
    """A process that is looked at once a restart; its memory and descriptors by the restart's number."""
    process = Watched("ddprun of node 1")
    for restart in range(restarts):
        process.add(restart, memory(restart), descriptors(restart))
    return process


class Growth(unittest.TestCase):
    def test_a_process_that_stays_as_it_is_has_not_grown(self):
        self.assertEqual(watched(lambda _: 5000).complaint(), "")

    def test_a_leak_of_memory_is_named_with_its_size_and_the_limit(self):
        text = watched(lambda restart: 5000 + 200 * restart).complaint()
        self.assertRegex(text, r"^ddprun of node 1 grew by \d+ KiB over \d+ restarts, at most \d+ are allowed$")

    def test_what_a_restart_leaves_in_the_history_is_allowed(self):
        self.assertEqual(watched(lambda restart: 5000 + soak_rules.MEMORY_KIB_A_RESTART * restart).complaint(), "")

    def test_a_restart_in_the_middle_of_a_look_needs_more_for_a_moment(self):
        busy = lambda restart: restart in (52, 55)
        self.assertEqual(watched(lambda restart: 90000 if busy(restart) else 5000,
                                 lambda restart: 90 if busy(restart) else 12).complaint(), "")

    def test_what_a_process_needs_to_begin_does_not_count(self):
        self.assertEqual(watched(lambda restart: 5000 if restart > 9 else 100 * restart).complaint(), "")

    def test_a_leak_of_descriptors_is_found(self):
        self.assertIn("descriptors more after", watched(lambda _: 5000, lambda restart: 12 + restart // 2).complaint())

    def test_too_few_restarts_prove_nothing(self):
        self.assertIsNone(watched(lambda restart: 5000 + 10000 * restart, restarts=8).growth())
        self.assertEqual(watched(lambda restart: 5000 + 10000 * restart, restarts=8).complaint(), "")

    def test_files_may_grow_as_the_ledger_does(self):
        self.assertEqual(soak_rules.files_complaint(50, 50 + 3 * 40, restarts=40, lost_nodes=0), "")
        self.assertIn("files more after 40 restarts", soak_rules.files_complaint(50, 50 + 9 * 40, 40, 0))


class Faults(unittest.TestCase):
    @staticmethod
    def drawn(seed, network=True, count=300):
        plan = Plan(random.Random(seed), network)
        return [plan.fault(4.0 * number) for number in range(count)]

    def test_a_seed_draws_the_same_faults_again(self):
        self.assertEqual(self.drawn(7), self.drawn(7))
        self.assertNotEqual(self.drawn(7), self.drawn(8))

    def test_every_fault_meets_every_node_in_time(self):
        met = {(name, node) for name, node, _ in self.drawn(1, count=3000)}
        self.assertEqual(len(met), len(soak_rules.FAULTS) * soak_rules.NODES)

    def test_without_namespaces_no_network_is_cut(self):
        self.assertNotIn("cut a node's network", {name for name, _, _ in self.drawn(1, network=False)})

    def test_in_each_period_one_ddprun_is_spared(self):
        plan = Plan(random.Random(3), True)
        for period in range(5):
            ended = {node for number in range(300)
                     for name, node, _ in [plan.fault(period * soak_rules.PERIOD + number * 0.9)]
                     if soak_rules.FAULTS[name][1]}
            self.assertEqual(len(ended), soak_rules.NODES - 1)


class Goodput(unittest.TestCase):
    def test_it_is_the_share_of_what_an_undisturbed_job_does(self):
        self.assertEqual(soak_rules.goodput(steps=1500, seconds=60, calm_rate=50), 0.5)
        self.assertEqual(soak_rules.goodput(1500, 0, 50), 0)


if __name__ == "__main__":
    unittest.main()
