"""Which torn checkpoint folder is moved (--set-aside-torn), and the record that decides it. Argument: the folder that
has the module `ddprun`."""
import contextlib
import errno
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, sys.argv.pop(1))
from ddprun import _torn
from ddprun._torn import FOLDER, GONE, LINK, OTHERS, Decision, Seen, decide

TORN, WHOLE, ASIDE = "/s/out/checkpoint-20", "/s/out/checkpoint-10", "/s/out.torn-checkpoint-20"


def record(**fields):
    return {**_torn.empty(), "generation": "0.0", "begun": TORN, "whole": WHOLE, **fields}


def seen(**fields):
    return Seen("0.1", **{"kind": FOLDER, "newest": ("checkpoint-20", "checkpoint-10", "checkpoint-5"), "whole": True,
                          **fields})


class Decisions(unittest.TestCase):
    def test_a_save_that_has_begun_and_not_ended_is_torn(self):
        self.assertEqual(decide(record(), seen()), Decision((TORN, ASIDE)))

    def leaves(self, what, this):
        self.assertEqual(decide(what, this), Decision())

    def test_it_stays_without_proof(self):
        self.leaves(record(begun=None), seen())
        self.leaves(record(), seen(alive=True))
        self.leaves(record(), seen()._replace(generation="0.0"))
        self.leaves(record(whole=None), seen())
        self.leaves(record(), seen(whole=False))
        self.leaves(record(whole="/other/checkpoint-10"), seen())

    def test_it_stays_where_it_would_change_nothing_or_too_much(self):
        self.leaves(record(), seen(newest=("checkpoint-30", "checkpoint-20", "checkpoint-10")))
        self.leaves(record(), seen(newest=("checkpoint-20", "checkpoint-15", "checkpoint-10")))
        self.leaves(record(), seen(newest=("checkpoint-20",)))
        self.leaves(record(), seen(newest=(), kind=GONE))
        self.leaves(record(), seen(kind=GONE))

    def test_what_is_not_ours_is_refused(self):
        for kind in (LINK, OTHERS, "a file"):
            self.assertEqual(decide(record(), seen(kind=kind)), Decision(refusal=f"{TORN} is {kind}"))
        for kind in (FOLDER, LINK, OTHERS, "a file"):
            self.assertEqual(decide(record(), seen(kind_aside=kind)), Decision(refusal=f"{ASIDE} exists"))

    def test_it_comes_back_where_the_older_one_fails_as_well(self):
        aside, moved = record(begun=None, aside=[TORN, ASIDE]), {"kind": GONE, "kind_aside": FOLDER}
        self.leaves(aside, seen(**moved))
        self.assertEqual(decide(aside, seen(raised=True, **moved)), Decision((ASIDE, TORN), back=True))
        self.leaves(aside, seen(raised=True, alive=True, **moved))
        self.leaves(aside, seen(raised=True, kind=GONE, kind_aside=GONE))
        self.assertEqual(decide(aside, seen(raised=True, kind=FOLDER, kind_aside=FOLDER)).refusal, f"{TORN} exists")
        self.assertEqual(decide(aside, seen(raised=True, kind=GONE, kind_aside=LINK)).refusal, f"{ASIDE} is {LINK}")

    def test_a_worker_does_not_wait_for_the_one_that_moves(self):
        self.assertEqual(decide(record(aside=[TORN, ASIDE]), seen()), Decision((TORN, ASIDE)))
        self.leaves(record(aside=[TORN, ASIDE]), seen(kind_aside=FOLDER))

    def test_the_newest_is_by_number(self):
        names = ["checkpoint-9", "checkpoint-10", "checkpoint-x", "x-checkpoint-11", "runs"]
        self.assertEqual(_torn.newest_names(names), ("checkpoint-10", "checkpoint-9"))


class Starts(unittest.TestCase):
    """The record of one run, in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.folder = os.path.realpath(folder.name)
        os.chdir(self.folder)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("DDPRUN_", "SLURM_"))}
        given = {"DDPRUN_RUN_KEY": "k", "RANK": "0", _torn.VARIABLE: self.folder}
        patched = unittest.mock.patch.dict(os.environ, {**clean, **given}, clear=True)
        patched.start()
        self.addCleanup(patched.stop)
        self.born = unittest.mock.patch.object(_torn, "_born", lambda pid: self.life)
        self.born.start()
        self.addCleanup(self.born.stop)
        self.life = 0

    def start(self, generation, rank=0):
        """A worker starts: what it prints. The one of the last generation is gone."""
        os.environ.update(TORCHELASTIC_RESTART_COUNT=str(generation), RANK=str(rank))
        self.life = generation
        lines = io.StringIO()
        with contextlib.redirect_stderr(lines):
            _torn.before_start()
        os.environ["RANK"] = "0"
        return lines.getvalue()

    def write(self, step, *files):
        os.makedirs(f"out/checkpoint-{step}", exist_ok=True)
        for name in files:
            with open(f"out/checkpoint-{step}/{name}", "w") as file:
                file.write(name)

    def tear(self):
        """A generation saves step 10, and dies while it saves step 20."""
        self.start(0)
        saves = _torn.Record()
        saves.first_step("")
        saves.begin("out/checkpoint-10")
        self.write(10, "model", "state")
        saves.end("out/checkpoint-10")
        saves.all_have_saved()
        saves.begin("out/checkpoint-20")
        self.write(20, "model")
        return saves

    def of_rank(self, rank):
        os.environ["RANK"] = str(rank)
        saves = _torn.Record()
        os.environ["RANK"] = "0"
        return saves

    def fail_with(self, saves, error):
        try:
            raise error
        except Exception:
            saves.failed()

    def names(self):
        return sorted(name for name in os.listdir("out") + os.listdir(".") if "checkpoint-" in name)

    def test_one_worker_moves_it_and_all_see_it_gone(self):
        self.tear()
        self.assertRegex(self.start(1, rank=1), r"^ddprun: \S*/out/checkpoint-20 is torn: .* It is \S*/"
                         r"out.torn-checkpoint-20 now, and \S*/out/checkpoint-10 is the newest checkpoint\n$")
        self.assertEqual(self.start(1), "")
        self.assertEqual(self.names(), ["checkpoint-10", "out.torn-checkpoint-20"])

    def test_a_save_that_has_ended_stays(self):
        self.tear().end("out/checkpoint-20")
        self.assertEqual(self.start(1), "")
        self.assertEqual(self.names(), ["checkpoint-10", "checkpoint-20"])

    def test_a_process_of_another_host_is_gone(self):
        self.tear()
        with unittest.mock.patch("socket.gethostname", lambda: "other"):
            os.environ["TORCHELASTIC_RESTART_COUNT"] = "1"
            with contextlib.redirect_stderr(io.StringIO()):
                _torn.before_start()  # its number and begin are those of a process here
        self.assertEqual(self.names(), ["checkpoint-10", "out.torn-checkpoint-20"])

    def test_a_process_of_this_host_that_lives_keeps_it(self):
        self.tear()
        os.environ["TORCHELASTIC_RESTART_COUNT"] = "1"
        _torn.before_start()
        self.assertEqual(self.names(), ["checkpoint-10", "checkpoint-20"])

    def test_a_start_from_nothing_keeps_the_proof(self):
        self.tear()
        self.start(1)
        saves = _torn.Record()
        saves.first_step("")
        saves.begin("out/checkpoint-30")
        self.write(30)
        self.assertIn("checkpoint-30 is torn", self.start(2))

    def test_a_worker_that_is_slower_prints_nothing(self):
        self.tear()
        with unittest.mock.patch("os.rename", side_effect=OSError(errno.ENOENT, "")):
            self.assertEqual(self.start(1), "")

    def test_another_file_system_is_named(self):
        self.tear()
        with unittest.mock.patch("os.rename", side_effect=OSError(errno.EXDEV, "")):
            self.assertRegex(self.start(1), r"^ddprun: --set-aside-torn cannot move \S+ to \S+: Invalid cross-")

    def test_an_older_one_that_has_changed_proves_nothing(self):
        self.tear()
        os.truncate("out/checkpoint-10/state", 1)
        self.assertEqual(self.start(1), "")
        self.assertEqual(self.names(), ["checkpoint-10", "checkpoint-20"])

    def test_a_save_that_wrote_no_folder_takes_no_proof_away(self):
        saves = self.tear()
        os.rename("out/checkpoint-20", "elsewhere")
        saves.begin("out/checkpoint-15")
        saves.end("out/checkpoint-15")
        saves.all_have_saved()
        saves.begin("out/checkpoint-20")
        os.rename("elsewhere", "out/checkpoint-20")
        self.assertIn("checkpoint-20 is torn", self.start(1))

    def test_a_save_into_a_folder_that_exists_stays(self):
        self.tear()
        _torn.Record().begin("out/checkpoint-20")
        self.start(1)
        self.assertIn("checkpoint-20", self.names())

    def test_a_generation_that_trains_proves_what_it_has_loaded(self):
        self.write(10, "model", "state")
        self.start(0)
        saves = _torn.Record()
        saves.first_step("out/checkpoint-10")
        saves.begin("out/checkpoint-20")
        self.write(20)
        self.assertIn("is torn", self.start(1))

    def test_it_comes_back_once(self):
        self.tear()
        self.start(1)
        self.fail_with(_torn.Record(), ValueError("header too large"))
        self.assertRegex(self.start(2), r"point-10 fails as well, so \S*/out.torn-checkpoint-20 is \S*point-20 again")
        self.assertEqual(self.names(), ["checkpoint-10", "checkpoint-20"])
        self.assertEqual(self.start(2, rank=1), "")
        _torn.Record()
        self.assertEqual(self.start(3), "")
        self.assertEqual(self.names(), ["checkpoint-10", "checkpoint-20"])

    def test_it_stays_aside_where_another_rank_was_lost(self):
        self.tear()
        self.start(1)
        self.fail_with(_torn.Record(), RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer"))
        self.assertEqual(self.start(2), "")
        self.assertEqual(self.names(), ["checkpoint-10", "out.torn-checkpoint-20"])

    def test_it_stays_aside_after_a_step(self):
        self.tear()
        self.start(1)
        saves = _torn.Record()
        saves.first_step("out/checkpoint-10")
        self.fail_with(saves, ValueError("of the training"))
        self.assertEqual(self.start(2), "")
        self.assertEqual(self.names(), ["checkpoint-10", "out.torn-checkpoint-20"])

    def test_a_failure_after_a_step_of_rank_0_is_not_kept(self):
        self.tear()
        self.start(1)
        first, other = _torn.Record(), self.of_rank(1)
        first.first_step("out/checkpoint-10")
        self.fail_with(other, ValueError("of rank 1"))
        self.start(2)
        saves = _torn.Record()
        saves.first_step("out/checkpoint-10")
        saves.begin("out/checkpoint-30")
        self.write(30)
        self.start(3)
        self.assertEqual(self.start(4), "")
        self.assertEqual(self.names(), ["checkpoint-10", "out.torn-checkpoint-20", "out.torn-checkpoint-30"])

    def test_a_failure_of_another_rank_after_its_step_is_none(self):
        self.tear()
        self.start(1)
        other = self.of_rank(1)
        other.first_step("out/checkpoint-10")
        self.fail_with(other, ValueError("of rank 1"))
        self.assertFalse(os.path.exists(".ddprun-saves-k.raised"))

    def test_a_link_is_left_alone_in_one_line(self):
        self.tear()
        os.rename("out/checkpoint-20", "elsewhere")
        os.symlink("../elsewhere", "out/checkpoint-20")
        self.assertRegex(self.start(1), r"^ddprun: --set-aside-torn moves no checkpoint: \S*checkpoint-20 is a link\n$")
        self.assertEqual(self.start(1, rank=1), "", "one line of all ranks")
        self.assertTrue(os.path.islink("out/checkpoint-20") and os.path.exists("elsewhere/model"))

    def test_another_users_folder_is_left_alone(self):
        self.tear()
        with unittest.mock.patch("os.geteuid", lambda: os.stat("out").st_uid + 1):
            self.assertEqual(_torn._kind("out/checkpoint-20"), OTHERS)
            self.assertEqual(self.start(1), "", "and so is another user's record")
        self.assertIn("checkpoint-20", self.names())

    def test_a_name_that_exists_is_left_alone(self):
        self.tear()
        os.mkdir("out.torn-checkpoint-20")
        self.assertRegex(self.start(1), r"^ddprun: --set-aside-torn moves no checkpoint: \S*point-20 exists\n$")
        self.assertEqual(self.names(), ["checkpoint-10", "checkpoint-20", "out.torn-checkpoint-20"])

    def test_a_full_disk_moves_nothing(self):
        self.tear()
        with unittest.mock.patch("os.replace", side_effect=OSError(errno.ENOSPC, "")):
            self.assertRegex(self.start(1), r"^ddprun: --set-aside-torn cannot write the record of checkpoints to "
                                            r"\S+: No space left on device\n$")
        self.assertEqual(self.names(), ["checkpoint-10", "checkpoint-20"])
        self.assertEqual([name for name in os.listdir(".") if name.endswith(".part")], [])

    def test_a_record_that_cannot_be_written_is_none(self):
        saves = self.tear()
        with unittest.mock.patch("os.replace", side_effect=OSError(errno.ENOSPC, "")):
            with contextlib.redirect_stderr(io.StringIO()):
                saves.end("out/checkpoint-20")
        self.assertEqual(self.start(1), "")
        self.assertIn("checkpoint-20", self.names())

    def test_a_record_of_other_content_is_none(self):
        for text in ("", "{", "[]", "{}", '{"begun": "/s"}'):
            with open(".ddprun-saves-k", "w") as file:
                file.write(text)
            self.assertEqual(self.start(1), "", text)

    def test_a_run_that_has_ended_leaves_no_record(self):
        self.tear()
        _torn.Record().done()
        self.assertEqual([name for name in os.listdir(".") if "ddprun" in name], [])

    def test_a_script_may_change_its_directory(self):
        self.start(0)
        os.mkdir("elsewhere")
        os.chdir("elsewhere")
        _torn.Record()
        self.assertEqual(os.listdir("."), [])
        self.assertTrue(os.path.exists("../.ddprun-saves-k"))

    def test_without_the_option_nothing_is_written(self):
        os.environ.pop(_torn.VARIABLE, None)
        saves = _torn.Record()
        saves.begin("out/checkpoint-10")
        saves.end("out/checkpoint-10")
        saves.all_have_saved()
        saves.first_step("")
        saves.failed()
        saves.done()
        self.assertEqual(os.listdir("."), [])


class Life(unittest.TestCase):
    def test_a_process_is_known_by_its_number_and_begin(self):
        self.assertGreater(_torn._born(os.getpid()), 0)
        self.assertEqual(_torn._born(2 ** 22 + 1), -1)


unittest.main()
