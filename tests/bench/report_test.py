#!/usr/bin/env python3
"""The rules of the report: goals, ratios, missing measures, JSON, and which measure comes next. Measures nothing."""
import json
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import drawing
import goals
import report
import run
import verdicts
from goals import Goal
from report import Row


def judge(goal, *rows):
    return verdicts.judge([goal], list(rows))[0]


def measures(*names, once=(), quick_seconds=10):
    return [run.Measure(name, 1, 1, quick_seconds, once=name in once) for name in names]


def played(rounds, seconds, found=True):
    """The names of the measures in the order of their turns, each of which takes so long."""
    now, names = 0, []
    while (each := rounds.next(now)) is not None:
        names.append(each.name)
        now += seconds
        rounds.done(each, seconds, found)
    return names


class Verdicts(unittest.TestCase):
    def test_a_bound_without_peers_is_held_against_the_median(self):
        for samples, state in (([1, 3, 9], verdicts.MET), ([1, 4, 9], verdicts.MISSED), ([3], verdicts.MET)):
            self.assertEqual(judge(Goal("m", 3), Row("m", "ddprun", samples)).state, state)

    def test_of_times_less_is_better_and_the_best_peer_counts(self):
        rows = [Row("m", "ddprun", [8]), Row("m", "slow", [20]), Row("m", "quick", [10])]
        found = judge(Goal("m", 0.8, ("slow", "quick")), *rows)
        self.assertEqual((found.state, found.peer, found.value), (verdicts.MET, "quick", 0.8))
        self.assertEqual(judge(Goal("m", 0.79, ("slow", "quick")), *rows).state, verdicts.MISSED)

    def test_of_rates_more_is_better(self):
        rows = [Row("m", "ddprun", [95]), Row("m", "a", [100]), Row("m", "b", [50])]
        found = judge(Goal("m", 0.95, ("a", "b"), more=True), *rows)
        self.assertEqual((found.state, found.peer), (verdicts.MET, "a"))
        self.assertEqual(judge(Goal("m", 0.96, ("a", "b"), more=True), *rows).state, verdicts.MISSED)

    def test_a_goal_of_no_orphans_is_met_by_zero(self):
        self.assertEqual(judge(Goal("m", 0), Row("m", "ddprun", [0, 0])).state, verdicts.MET)
        self.assertEqual(judge(Goal("m", 0), Row("m", "ddprun", [1])).state, verdicts.MISSED)

    def test_a_known_limit_is_told_only_where_the_goal_is_missed(self):
        goal = Goal("m", 1, reason="the loopback")
        missed = judge(goal, Row("m", "ddprun", [2]))
        self.assertEqual((missed.state, missed.reason), (verdicts.LIMITED, "the loopback"))
        met = judge(goal, Row("m", "ddprun", [1]))
        self.assertEqual((met.state, met.reason), (verdicts.MET, ""))

    def test_a_limit_counts_only_where_the_subject_that_shows_it_misses_the_goal_too(self):
        goal = Goal("m", 0.8, ("torch",), reason="the loopback", limit="floor")
        rows = [Row("m", "ddprun", [95]), Row("m", "torch", [100])]
        found = judge(goal, *rows, Row("m", "floor", [90]))
        self.assertEqual((found.state, found.reason), (verdicts.LIMITED, "the loopback: floor is at 0.90"))
        found = judge(goal, *rows, Row("m", "floor", [70]))
        self.assertEqual((found.state, found.reason), (verdicts.MISSED, "floor is at 0.70, so it can be reached"))
        self.assertEqual(judge(goal, *rows).state, verdicts.LIMITED)

    def test_what_is_missing_says_so_and_is_never_met(self):
        ours, peer = Row("m", "ddprun", [1]), Row("m", "torchrun", [5])
        for rows, what in (([], "no figure of ddprun"), ([peer], "no figure of ddprun"),
                           ([ours], "no figure of torchrun"),
                           ([ours, Row("m", "torchrun", ["none in 60 s"])], "no figure of torchrun"),
                           ([Row("m", "ddprun", []), peer], "ddprun"), ([ours, Row("m", "torchrun", [0])], "no ratio")):
            found = judge(Goal("m", 1, ("torchrun",)), *rows)
            self.assertEqual(found.state, verdicts.MISSING)
            self.assertIn(what, found.reason)

    def test_another_measure_or_subject_does_not_count(self):
        rows = [Row("other", "ddprun", [1]), Row("m", "ddprun cold", [1])]
        self.assertEqual(judge(Goal("m", 3), *rows).state, verdicts.MISSING)
        self.assertEqual(judge(Goal("m", 3, subject="ddprun cold"), *rows).state, verdicts.MET)

    def test_the_table_has_goal_figure_ratio_and_verdict(self):
        rows = [Row("start (ms)", "ddprun", [1, 2, 3]), Row("start (ms)", "torchrun", [40])]
        line = verdicts.verdict_table(verdicts.judge([Goal("start (ms)", 0.1, ("torchrun",))], rows)).splitlines()[2]
        self.assertEqual(
            line, "| start (ms) | at most 0.1 of torchrun | 2 (1 to 3, 3) | torchrun 40 | 1/20 | met |  |")

    def test_the_summary_counts_each_goal_once(self):
        rows = [Row("a", "ddprun", [1]), Row("b", "ddprun", [9]), Row("c", "ddprun", [9])]
        judged = verdicts.judge([Goal("a", 1), Goal("b", 1), Goal("c", 1, reason="r"), Goal("d", 1)], rows)
        self.assertEqual(verdicts.summary(judged),
                         "Goals: 4, of which 1 met, 1 missed for a reason, 1 missed without one, 1 not measured")

    def test_json_has_all_samples_and_the_verdict(self):
        rows = [Row("m", "ddprun", [1.5, 2.5]), Row("m", "torchrun", ["none in 60 s"])]
        judged = verdicts.judge([Goal("m", 3), Goal("m", 1, ("torchrun",))], rows)
        found = json.loads(verdicts.as_json({"cores": 2}, rows, judged, ["a note"]))
        self.assertEqual(found["machine"], {"cores": 2})
        self.assertEqual([row["samples"] for row in found["rows"]], [[1.5, 2.5], ["none in 60 s"]])
        first, second = found["goals"]
        self.assertEqual((first["state"], first["value"], first["samples"], first["bound"]), ("met", 2, [1.5, 2.5], 3))
        self.assertEqual((second["state"], second["value"], second["peer"]), ("not measured", None, None))
        self.assertEqual(found["notes"], ["a note"])


class Table(unittest.TestCase):
    def test_the_goals_are_well_formed(self):
        seen = set()
        for goal in goals.GOALS:
            key = (goal.measure, goal.subject, goal.peers)
            self.assertNotIn(key, seen)
            seen.add(key)
            self.assertTrue(goal.bound > 0 or not goal.peers, key)
            self.assertNotIn(goal.subject, goal.peers)
            # A rate's goal is a least, a time's a most.
            if "/s)" in goal.measure:
                self.assertTrue(goal.more, key)
            if re.search(r"\((ms|s|us|MiB|KiB)\)", goal.measure):
                self.assertFalse(goal.more, key)

    def test_rounds_are_merged_sample_by_sample(self):
        rows = report.merged([Row("a", "x", [1]), Row("b", "x", [5]), Row("a", "y", [2]), Row("a", "x", [3, "none"])])
        self.assertEqual([(row.measure, row.subject, row.samples) for row in rows],
                         [("a", "x", [1, 3, "none"]), ("a", "y", [2]), ("b", "x", [5])])

    def test_subjects_take_turns_and_one_that_fails_costs_the_others_nothing(self):
        order = []

        def sample(name):
            order.append(name)
            if name == "bad":
                raise RuntimeError("it broke")
            return {"(ms)": 1, "(MiB)": 2}
        rows = report.collect("m", ["a", "bad", "b"], 2, sample)
        self.assertEqual(order, ["a", "bad", "b"] * 2)
        self.assertEqual([(row.measure, row.subject, row.samples) for row in rows],
                         [("m (ms)", "a", [1, 1]), ("m (ms)", "b", [1, 1]), ("m (MiB)", "a", [2, 2]),
                          ("m (MiB)", "b", [2, 2])])

    def test_the_page_names_machine_and_date(self):
        about = {"date": "2026-11-30", "cores": 2, "torch": ""}
        text = run.page(about, [Row("m", "ddprun", [1])], verdicts.judge([Goal("m", 1)], [Row("m", "ddprun", [1])]),
                        [Path("plots/start.png")])
        for part in ("# Figures of 2026-11-30", "cores 2", "Goals: 1, of which 1 met", "![start](plots/start.png)",
                     "| m | ddprun |"):
            self.assertIn(part, text)
        self.assertNotIn("torch", text.split("## Goals")[0].replace("beside", ""))


class Order(unittest.TestCase):
    def test_a_full_run_takes_all_once_and_goes_on_while_there_is_time(self):
        rounds = run.Rounds(measures("a", "b", "c", once=("b",)), quick=False, end=40)
        self.assertEqual(played(rounds, 10), ["a", "b", "c", "a"])

    def test_a_full_run_leaves_nothing_out_even_if_it_takes_longer(self):
        rounds = run.Rounds(measures("a", "b", "c"), quick=False, end=15)
        self.assertEqual(played(rounds, 10), ["a", "b", "c"])

    def test_a_quick_run_is_one_round_which_leaves_out_nothing_that_it_promises(self):
        chosen = measures("a", "b", "c")
        chosen[1].quick = False
        self.assertEqual(played(run.Rounds(chosen, quick=True, end=15), 10), ["a", "c"])
        self.assertEqual(played(run.Rounds(chosen, quick=True, end=1000), 10), ["a", "c"])

    def test_what_a_measure_took_counts_in_the_next_round(self):
        rounds = run.Rounds(measures("a"), quick=False, end=45)
        self.assertEqual(played(rounds, 20), ["a", "a"])

    def test_a_measure_that_finds_nothing_is_not_repeated(self):
        self.assertEqual(played(run.Rounds(measures("a"), quick=False, end=1000), 1, found=False), ["a"])

    def test_the_rounds_come_to_an_end(self):
        self.assertEqual(len(played(run.Rounds(measures("a"), quick=False, end=10**6), 0)), run.MOST_ROUNDS)

    def test_what_is_asked_for_by_its_name_is_in_a_quick_run_too(self):
        chosen = measures("a", "b")
        chosen[1].quick = False
        self.assertEqual(played(run.Rounds(chosen, quick=True, end=10), 10), ["a"])
        self.assertEqual(played(run.Rounds(run.asked_for(chosen, ["b"]), quick=True, end=10), 10), ["b"])
        self.assertEqual(run.asked_for(chosen, []), chosen)

    def test_every_measure_is_a_script_of_this_folder(self):
        for each in run.WITH_SLURM + run.ALONE:
            self.assertTrue((run.HERE / f"{each.name}.py").exists(), each.name)

    def test_a_full_quick_round_is_planned_within_its_time(self):
        planned = sum(each.quick_seconds for each in run.WITH_SLURM + run.ALONE if each.quick)
        self.assertLessEqual(planned, run.QUICK)


class Plots(unittest.TestCase):
    def test_a_plot_without_figures_is_left_out(self):
        self.assertEqual(drawing.drawable([]), [])
        self.assertEqual(drawing.drawable([Row("start, 8 workers (ms)", "ddprun", [3])]), ["start"])
        self.assertEqual(drawing.drawable([Row("start, 8 workers (ms)", "ddprun", ["none"])]), [])
        add = "store, add, 8 clients (operations/s)"
        self.assertEqual(drawing.drawable([Row(add, "ddprun", [1]), Row(add, "floor", [1])]), [])
        self.assertEqual(drawing.drawable([Row(add, "ddprun", [1]), Row(add, "torch-poll", [1])]), ["store"])

    def test_sizes_are_sorted_by_number(self):
        rows = [Row(f"{nodes} nodes: all run (s)", "ddprun", [nodes / 10]) for nodes in (1024, 16, 256)]
        found = drawing.by_size(drawing.medians(rows), r"(\d+) nodes: all run \(s\)")
        self.assertEqual(found, {"ddprun": [(16, 1.6), (256, 25.6), (1024, 102.4)]})

    def test_speed_is_more_than_one_where_ours_is_better(self):
        self.assertEqual(drawing.speed("add (operations/s)", 20, 10), 2)
        self.assertEqual(drawing.speed("release (ms)", 5, 10), 2)


class Results(unittest.TestCase):
    def test_the_figures_for_pages_are_those_of_the_tables(self):
        rows = [Row("start, 8 workers (ms)", "ddprun", [3, 4, 1936]), Row("start, 8 workers (ms)", "torchrun", [1936])]
        judged = verdicts.judge([Goal("start, 8 workers (ms)", 1.5, ("torchrun",))], rows)
        found = json.loads(verdicts.results_json({"date": "2026-11-27"}, rows, judged))
        self.assertEqual(found["machine"], {"date": "2026-11-27"})
        self.assertEqual(found["goals"][0]["figure"], "4 (3 to 1,936, 3)")
        self.assertEqual(found["figures"][1], {"measure": "start, 8 workers (ms)", "subject": "torchrun",
                                               "min": "1,936", "median": "1,936", "max": "1,936", "samples": "1"})

    def test_the_recorded_page_and_the_recorded_figures_are_of_one_run(self):
        page, recorded = (run.HERE / "RESULTS.md").read_text(), json.loads((run.HERE / "RESULTS.json").read_text())
        lines = ["| " + " | ".join(row.values()) + " |" for row in recorded["goals"]]
        lines += ["| " + " | ".join(row.values()) + " | " for row in recorded["figures"]]
        self.assertEqual([line for line in lines if line not in page], [])
        self.assertEqual(len(lines), len([line for line in page.splitlines() if line.startswith("|")]) - 4)


if __name__ == "__main__":
    unittest.main()
