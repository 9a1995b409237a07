"""The module `ddprun` by itself: what it writes, reads and forgives. Argument: the folder that has the module."""
import atexit
import fcntl
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import typing
import unittest
import zipfile

sys.path.insert(0, sys.argv.pop(1))
import ddprun
from ddprun import _frameworks

signal.alarm(120)  # a call that waits ends the test


def with_variable(name, value):
    """The variable is set for one test."""

    def around(test):
        os.environ[name] = value
        test.addCleanup(os.environ.pop, name, None)

    return around


class Progress(unittest.TestCase):
    def setUp(self):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        with_variable("DDPRUN_PROGRESS_FD", str(self.writer))(self)

    def tearDown(self):
        for descriptor in (self.reader, self.writer):
            try:
                os.close(descriptor)
            except OSError:
                pass

    def test_is_a_line(self):
        ddprun.progress(17)
        ddprun.progress(18, snapshot=15)
        ddprun.progress(19, snapshot=19, snapshot_ms=2300, saving_ms=40)
        text = os.read(self.reader, 1000).decode()
        self.assertEqual(text, "step=17\nstep=18 snapshot=15\nstep=19 snapshot=19 snapshot_ms=2300 saving_ms=40\n")

    def test_never_waits_for_a_slow_reader(self):
        size = fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, 4096)
        for step in range(size):  # far more than the pipe holds; a call that waits never returns
            ddprun.progress(step)
        self.assertTrue(os.read(self.reader, 2 * size).endswith(b"\n"))

    def test_survives_a_reader_that_is_gone(self):
        os.close(self.reader)
        ddprun.progress(1)

    def test_knows_a_variable_that_names_nothing(self):
        os.close(self.writer)
        ddprun.progress(1)
        os.environ["DDPRUN_PROGRESS_FD"] = "many"
        ddprun.progress(1)
        os.environ["DDPRUN_PROGRESS_FD"] = str(1 << 40)
        ddprun.progress(1)
        del os.environ["DDPRUN_PROGRESS_FD"]
        ddprun.progress(1)

    def test_writes_into_no_file_of_the_script(self):
        """What a worker starts gets the variable, not the pipe: a file of its own has the number."""
        with tempfile.TemporaryFile() as file:
            os.environ["DDPRUN_PROGRESS_FD"] = str(file.fileno())
            ddprun.progress(1)
            self.assertEqual(os.fstat(file.fileno()).st_size, 0)

    def test_takes_whole_numbers_only_and_says_which_is_none(self):
        class Whole:  # as numbers of NumPy and tensors are
            def __index__(self):
                return 5

        ddprun.progress(Whole(), snapshot=Whole())
        self.assertEqual(os.read(self.reader, 100), b"step=5 snapshot=5\n")
        for told in (True, False):  # a mistake shows without ddprun, too
            if not told:
                del os.environ["DDPRUN_PROGRESS_FD"]
            for wrong in (1.5, "3", "1 loss=nan", None):
                with self.assertRaisesRegex(TypeError, "step is .*; give a whole number"):
                    ddprun.progress(wrong)
            with self.assertRaisesRegex(TypeError, "snapshot_ms is 2.5; give a whole number"):
                ddprun.progress(1, snapshot=1, snapshot_ms=2.5)


class Events(unittest.TestCase):
    def setUp(self):
        """ddprun is another process: the socket has its number as that of the peer."""
        ddprun._events, ddprun._unread = None, b""
        ours, theirs = socket.socketpair()
        made = os.fork()
        if made == 0:  # the process that makes the pair is its peer, so it is made here, and sent
            pair = socket.socketpair()
            socket.send_fds(theirs, [b"x"], [each.fileno() for each in pair])
            os._exit(0)
        _, (writer, reader), _, _ = socket.recv_fds(ours, 1, 2)
        os.waitpid(made, 0)
        ours.close(), theirs.close()
        self.writer, self.reader = socket.socket(fileno=writer), reader
        os.set_inheritable(reader, True)
        with_variable("DDPRUN_EVENTS_FD", str(self.reader))(self)

    def tearDown(self):
        self.writer.close()
        os.close(self.reader)
        ddprun._forget_events()

    def test_none(self):
        begin = time.monotonic()
        self.assertEqual(ddprun.events(), [])
        self.assertEqual(ddprun.events(wait=0.05), [])
        self.assertGreaterEqual(time.monotonic() - begin, 0.05)

    def test_all_since_the_last_call(self):
        self.writer.sendall(b'{"event":"worker_lost","rank":2}\n{"event":"stop"}\n')
        self.assertEqual(ddprun.events(wait=60), [{"event": "worker_lost", "rank": 2}, {"event": "stop"}])
        self.assertEqual(ddprun.events(), [])

    def test_a_part_of_a_line_is_kept(self):
        self.writer.sendall(b'{"event":"st')
        self.assertEqual(ddprun.events(), [])
        self.writer.sendall(b'op"}\n')
        self.assertEqual(ddprun.events(), [{"event": "stop"}])

    def test_what_came_before_the_end(self):
        self.writer.sendall(b'{"event":"stop"}\n')
        self.writer.close()
        self.assertEqual(ddprun.events(), [{"event": "stop"}])
        self.assertEqual(ddprun.events(), [])

    def test_what_the_worker_starts_does_not_get_it(self):
        ddprun.events()
        self.assertFalse(os.get_inheritable(self.reader))

    def test_a_fork_takes_none_from_the_worker(self):
        ddprun.events()
        self.writer.sendall(b'{"event":"stop"}\n')
        child = os.fork()
        if child == 0:
            os._exit(len(ddprun.events()))
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(len(ddprun.events()), 1)

    def test_a_socket_of_the_script_is_left_alone(self):
        """What a worker starts gets the variable, not the socket: one of its own has the number."""
        mine, other = socket.socketpair()
        with mine, other:
            other.sendall(b"mine\n")
            os.environ["DDPRUN_EVENTS_FD"] = str(mine.fileno())
            self.assertEqual(ddprun.events(), [])
            self.assertEqual(mine.recv(10), b"mine\n")

    def test_without_ddprun(self):
        for value in (None, "many", str(1 << 40), "9999"):
            ddprun._events = None
            os.environ.pop("DDPRUN_EVENTS_FD", None)
            if value:
                os.environ["DDPRUN_EVENTS_FD"] = value
            self.assertEqual(ddprun.events(), [])


class Requests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stop, self.snapshot = folder.name + "/stop.json", folder.name + "/snapshot.json"
        with_variable("DDPRUN_STOP_FILE", self.stop)(self)
        with_variable("DDPRUN_SNAPSHOT_FILE", self.snapshot)(self)

    def test_a_stop_and_the_time_left(self):
        self.assertFalse(ddprun.stop_requested())
        self.assertIsNone(ddprun.seconds_left())
        with open(self.stop, "w") as file:
            json.dump({"killed_at": time.time() + 1000}, file)
        self.assertTrue(ddprun.stop_requested())
        self.assertTrue(0 < ddprun.seconds_left() <= 1000)
        with open(self.stop, "w") as file:
            json.dump({"killed_at": 1}, file)
        self.assertEqual(ddprun.seconds_left(), 0)

    def test_a_file_that_says_nothing_is_a_stop_all_the_same(self):
        for text in ("", "[]", '{"killed_at": "soon"}'):
            with open(self.stop, "w") as file:
                file.write(text)
            self.assertTrue(ddprun.stop_requested())
            self.assertIsNone(ddprun.seconds_left())

    def test_a_snapshot(self):
        self.assertEqual(ddprun.snapshot_path(), self.snapshot)
        self.assertFalse(ddprun.snapshot_requested())
        open(self.snapshot, "w").close()
        self.assertTrue(ddprun.snapshot_requested())

    def test_without_ddprun(self):
        del os.environ["DDPRUN_STOP_FILE"], os.environ["DDPRUN_SNAPSHOT_FILE"]
        self.assertFalse(ddprun.stop_requested())
        self.assertIsNone(ddprun.seconds_left())
        self.assertIsNone(ddprun.snapshot_path())
        self.assertFalse(ddprun.snapshot_requested())


class Terminated(unittest.TestCase):
    """Each in a process of its own, because what is told stays told."""

    def in_child(self, test):
        child = os.fork()
        if child == 0:
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                ddprun._told = ddprun._listens = False
                os._exit(0 if test() else 1)
            except BaseException:
                os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_counts_as_a_stop(self):
        def test():
            if ddprun.stop_requested():
                return False
            os.kill(os.getpid(), signal.SIGTERM)
            return ddprun.stop_requested()

        self.in_child(test)

    def test_leaves_a_handler_of_the_script(self):
        def test():
            heard = []
            signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
            ddprun.stop_requested()
            os.kill(os.getpid(), signal.SIGTERM)
            return heard == [1] and not ddprun.stop_requested()

        self.in_child(test)

    def test_another_thread_may_ask(self):
        def test():
            answers = []
            thread = threading.Thread(target=lambda: answers.append(ddprun.stop_requested()))
            thread.start()
            thread.join()
            return answers == [False]

        self.in_child(test)


class Checkpoints(unittest.TestCase):
    """What the callbacks for frameworks share; the frameworks themselves are tried by tests/e2e/framework_stop.sh."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def checkpoint(self, name, *files, state="{}"):
        os.makedirs(os.path.join(self.folder, name))
        for each in files:
            with open(os.path.join(self.folder, name, each), "w") as file:
                file.write(state)

    def newest(self):
        path = _frameworks.newest_whole(self.folder, r"checkpoint[-_](\d+)")
        return path and os.path.basename(path)

    def test_the_newest_is_by_number(self):
        self.assertIsNone(self.newest())
        for number in ("9", "10"):
            self.checkpoint("checkpoint-" + number, "model.safetensors", "trainer_state.json")
        self.assertEqual(self.newest(), "checkpoint-10")
        self.assertIsNone(_frameworks.newest_whole(self.folder + "/absent", "(.*)"))

    def test_a_torn_one_is_passed_over(self):
        self.checkpoint("checkpoint-10", "model.safetensors", "trainer_state.json")
        self.checkpoint("checkpoint-20", "config.json")
        self.checkpoint("checkpoint-30", "model.safetensors", "optimizer.pt")
        self.checkpoint("checkpoint-40", "model.safetensors", "trainer_state.json", state='{"epoch"')
        self.checkpoint("checkpoint-50", "model.safetensors", "trainer_state.json", "checkpoint-is-incomplete.txt")
        self.checkpoint("checkpoint-60", "trainer_state.json")
        self.assertEqual(self.newest(), "checkpoint-10")

    def test_a_part_of_the_weights_is_missing(self):
        index = "model.safetensors.index.json"
        parts = '{"weight_map": {"w": "model-1.safetensors"}}'
        self.checkpoint("checkpoint-10", index, "trainer_state.json", state=parts)
        self.assertIsNone(self.newest())
        self.checkpoint("checkpoint-20", index, "trainer_state.json", "model-1.safetensors", state=parts)
        self.assertEqual(self.newest(), "checkpoint-20")

    def test_each_rank_of_accelerate_has_written(self):
        with_variable("WORLD_SIZE", "2")(self)
        self.checkpoint("checkpoint_1", "model.safetensors", "random_states_0.pkl", "random_states_1.pkl")
        self.checkpoint("checkpoint_2", "model.safetensors", "random_states_1.pkl")
        self.assertEqual(self.newest(), "checkpoint_1")

    def test_the_newest_file_is_one_that_was_written_to_its_end(self):
        for when, name in enumerate(("a.ckpt", "b.ckpt", "c.txt")):
            path = os.path.join(self.folder, name)
            with zipfile.ZipFile(path, "w") as file:
                file.writestr("data", "x" * 1000)
            os.utime(path, (when, when))
        self.assertEqual(_frameworks.newest_file(self.folder, ".ckpt"), self.folder + "/b.ckpt")
        os.truncate(self.folder + "/b.ckpt", 900)
        os.utime(self.folder + "/b.ckpt", (9, 9))
        self.assertEqual(_frameworks.newest_file(self.folder, ".ckpt"), self.folder + "/a.ckpt")


class Hooks(unittest.TestCase):
    def test_an_unknown_version_is_named(self):
        major, minor = sorted(_frameworks.KNOWN["transformers"])[-1]
        self.assertIsNone(_frameworks.unknown_version("transformers", f"{major}.{minor}.7.dev0"))
        self.assertIn("transformers 99.0 is not one", _frameworks.unknown_version("transformers", "99.0"))

    def test_no_line_after_the_training_is_run(self):
        class Trainer:
            def __init__(self, stops):
                self.stops = stops

            def fit(self):
                return 3

        _frameworks.end_after(Trainer, "fit", lambda trainer: trainer.stops)
        _frameworks.end_after(Trainer, "fit", lambda trainer: trainer.stops)
        self.assertEqual(Trainer(False).fit(), 3)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                atexit.register(os.write, writing, b"atexit")
                Trainer(True).fit()
            finally:
                os.write(writing, b"more")
                os._exit(9)
        os.close(writing)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(os.read(reading, 100), b"atexit")
        os.close(reading)

    def test_who_begins_a_snapshot_takes_the_request_away(self):
        with tempfile.NamedTemporaryFile(delete=False) as file:
            with_variable("DDPRUN_SNAPSHOT_FILE", file.name)(self)
        with_variable("LOCAL_RANK", "1")(self)
        _frameworks.begin_snapshot()
        self.assertEqual(_frameworks.wishes(), (False, True))
        os.environ["LOCAL_RANK"] = "0"
        _frameworks.begin_snapshot()
        _frameworks.begin_snapshot()
        self.assertEqual(_frameworks.wishes(), (False, False))


class Types(unittest.TestCase):
    def test_every_function_has_them(self):
        for name in ddprun.__all__:
            self.assertIn("return", typing.get_type_hints(getattr(ddprun, name)), name)
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(ddprun.__file__), "py.typed")))


unittest.main()
