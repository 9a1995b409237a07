#!/usr/bin/env python3
"""The verdict and the named cause, from runs that are made up: 20 steps, snapshots at each fifth."""
import json
import unittest

import modules  # noqa: F401
from ddprun_rehearsal import causes, report
from ddprun_rehearsal.judge import judge, refer
from ddprun_rehearsal.play import Played
from ddprun_rehearsal.steps import Reader
from ddprun_rehearsal.watch import Save

SCRIPT = "optimizer scheduler scaler random dataloader"
ALL = ["optimizer", "scheduler", "scaler", "rng", "sampler"]


def loss(step):
    return "%.4f" % (1.0 / (step + 1))


def line(step, text=None, rate="0.1"):
    return "[default0]:step %d loss %s lr %s" % (step, text or loss(step), rate)


def play(*attempts, fault="", code=0, at=None, names=(), how="renamed", saves=True, **given):
    """Attempts are lists of lines; one comes each second. The fault is at the begin of the second one."""
    reader, now = Reader(), 0.0
    played = Played(fault, reader, code=code, names=list(names), **given)
    for number, lines in enumerate(attempts):
        if number == 1:
            played.fault_at, played.before = now - 0.5, reader.newest()
        reader.line("ddprun: generation %d: 1 node, 1 worker" % number, now)
        for text in lines:
            now += 1
            reader.line(text, now)
            if saves and "step" in text and int(text.split()[1]) % 5 == 0:
                played.saves.append(Save(now + 0.5, "/w/step-%s.pt" % text.split()[1], how, 100))
    if len(attempts) == 1 and at:
        played.fault_at, played.before = at, reader.newest()
    return played


def undisturbed(**given):
    return play([line(step) for step in range(1, 21)], **given)


def judged(played, reference=None):
    one = undisturbed()
    reference = reference or refer(one, undisturbed())
    verdict = judge(played, reference, 12)
    verdict.causes = causes.find(verdict, played, reference, SCRIPT)
    return verdict


def killed(after, **given):
    return judged(play([line(step) for step in range(1, 13)], after, fault="kill", **given))


class Judge(unittest.TestCase):
    def test_sound_program_holds(self):
        verdict = killed([line(step) for step in range(11, 21)])
        self.assertEqual((verdict.held, verdict.resumes, verdict.first, verdict.lost, verdict.same, verdict.causes),
                         (True, "yes", 11, 2, "equal", []))

    def test_values_within_the_noise_hold(self):
        other = play([line(step, "%.4f" % (1.001 / (step + 1))) for step in range(1, 21)])
        reference = refer(undisturbed(), other)
        played = play([line(step) for step in range(1, 13)],
                      [line(step, "%.4f" % (1.0005 / (step + 1))) for step in range(11, 21)], fault="kill")
        verdict = judged(played, reference)
        self.assertEqual((verdict.held, verdict.same), (True, "within the noise"))

    def test_start_at_the_first_step_is_no_resume(self):
        verdict = killed([line(step) for step in range(1, 21)])
        self.assertEqual((verdict.held, verdict.resumes, verdict.lost), (False, "no", 12))
        self.assertIn("none is loaded", verdict.causes[0])

    def test_counter_that_begins_again_is_named(self):
        verdict = killed([line(step, loss(step + 10)) for step in range(1, 21)])
        self.assertEqual(verdict.shift, 10)
        self.assertIn("counter of steps", verdict.causes[0])

    def test_learning_rate_that_begins_again_is_named(self):
        rates = [str(0.1 * 0.9 ** step) for step in range(21)]
        one = play([line(step, rate=rates[step]) for step in range(1, 21)])
        played = play([line(step, rate=rates[step]) for step in range(1, 13)],
                      [line(step, loss(step) if step == 11 else "0.9", rates[step - 10]) for step in range(11, 21)],
                      fault="kill", names=["optimizer"])
        verdict = judged(played, refer(one, one))
        self.assertTrue(verdict.rate_repeats)
        self.assertEqual(verdict.causes[0], "the learning rate starts again at its first value after a resume: the "
                         "snapshot lacks it")

    def test_missing_part_is_named_by_where_values_begin_to_differ(self):
        first, second = ([line(11, "0.9")] + [line(step, "0.8") for step in range(12, 21)],
                         [line(11)] + [line(step, "0.8") for step in range(12, 21)])
        for lines, part, cause in ((first, "sampler", "position in the data"), (first, "rng", "random state"),
                                   (second, "optimizer", "optimizer's state"), (second, "scaler", "scaler")):
            verdict = killed(lines, names=[name for name in ALL if name != part])
            self.assertIn(cause, verdict.causes[0])
            self.assertFalse(verdict.held)

    def test_what_was_right_at_the_first_step_is_not_blamed(self):
        lines = [line(11)] + [line(step, "0.8") for step in range(12, 21)]
        verdict = killed(lines, names=[name for name in ALL if name not in ("rng", "sampler")])
        self.assertIn("is saved and not loaded", verdict.causes[0])

    def test_older_snapshot_than_the_newest_is_named(self):
        verdict = killed([line(step) for step in range(6, 21)])
        self.assertEqual((verdict.held, verdict.skipped), (False, 10))
        self.assertIn("stale", verdict.causes[0])

    def test_job_that_does_not_train_again_does_not_hold(self):
        verdict = killed(["[default0]:OSError: Address already in use"], code=1)
        self.assertEqual((verdict.held, verdict.resumes), (False, "unknown"))
        self.assertIn("port", verdict.causes[0])

    def test_processes_that_stay_do_not_hold(self):
        verdict = killed([line(step) for step in range(11, 21)], left=["123 python loader"])
        self.assertFalse(verdict.held)
        self.assertIn("123 python loader", verdict.causes[0])

    def test_stop_that_takes_the_whole_grace_is_ignored(self):
        played = play([line(step) for step in range(1, 13)], [line(step) for step in range(11, 21)], fault="stop",
                      second_start=43.0)
        played.reader.own.append((11.6, "ddprun: stopping: SIGTERM on node n1; the workers have 30.0 s to end"))
        self.assertTrue(judged(played).stop_ignored)

    def test_fault_that_never_came_cannot_be_judged(self):
        self.assertIsNone(judged(play([line(step) for step in range(1, 9)], fault="kill")).held)

    def test_frozen_rank_that_is_not_noticed(self):
        played = play([line(step) for step in range(1, 13)], fault="hang", code=None, at=12.5, silent=True)
        verdict = judged(played)
        self.assertEqual((verdict.held, verdict.unnoticed), (False, True))

    def test_values_that_only_other_ranks_have_wrong(self):
        lines = [line(step) for step in range(1, 13)]
        both = [text for each in lines for text in (each, each.replace("default0", "default1"))]
        one = play([text for step in range(1, 21) for text in (line(step), line(step).replace("default0", "default1"))])
        after = [text for step in range(11, 21)
                 for text in (line(step), line(step, "0.9").replace("default0", "default1"))]
        verdict = judged(play(both, after, fault="kill"), refer(one, one))
        self.assertIn("other ranks differ", verdict.causes[0])


class Report(unittest.TestCase):
    FACTS = {"seed": 1, "first": 1, "last": 20, "source": "printed lines (step)"}

    def test_what_did_not_hold_comes_first(self):
        good, bad = killed([line(step) for step in range(11, 21)]), killed([line(step) for step in range(1, 21)])
        text = report.text([good, bad], self.FACTS, [])
        self.assertTrue(text.startswith("rehearsal: 1 of 2 faults did not hold: kill\nkill (one rank is killed): NOT"))

    def test_json_is_json(self):
        data = json.loads(report.as_json([killed([line(11, "nan")])], self.FACTS, ["w"]))
        self.assertEqual((data["held"], data["faults"][0]["worst"]), (False, None))


if __name__ == "__main__":
    unittest.main()
