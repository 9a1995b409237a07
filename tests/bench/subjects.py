"""The launchers that are compared, and how each is told to start N workers on one node.

  floor     tool.c: posix_spawn and wait, nothing else; what the kernel allows
  mpirun    Open MPI
  srun      Slurm, one node of ../tools/slurmlab ($SLURMLAB to use another program); needs root
  torchrun  $TORCHRUN, default torchrun on PATH
  ddprun    $DDPRUN, default build/bin/ddprun of this tree; takes torchrun's options
"""
import atexit
import os
import shutil
import subprocess

from workplace import HERE, folder, start, stop, tool, wait_until

# The order of the rows in a table.
ALL = ["floor", "mpirun", "srun", "torchrun", "ddprun"]
PYTHON = os.environ.get("PT_PYTHON", "python3")
TORCHRUN = os.environ.get("TORCHRUN", "torchrun")
DDPRUN = os.environ.get("DDPRUN", str(HERE.parent.parent / "build" / "bin" / "ddprun"))
SLURMLAB = os.environ.get("SLURMLAB", str(HERE.parent / "tools" / "slurmlab"))
notes = []


def note(text):
    if text not in notes:
        notes.append(text)


def present(wanted, possible):
    """Those of the possible subjects that were asked for and are installed; notes which are left out."""
    return [name for name in ALL if name in wanted and name in possible and _installed(name)]


def _installed(name):
    if name == "floor":
        return True
    if name == "srun":
        return _lab_is_up()
    program = {"mpirun": "mpirun", "torchrun": TORCHRUN, "ddprun": DDPRUN}[name]
    if program and shutil.which(program):
        return True
    # A missing launcher is a note and not an error: few machines have all of them.
    note(f"{name} left out: " + (f"no {program}"))
    return False


class Lab:
    """A Slurm cluster of our own, beside those that tests have up at the same time."""

    def __init__(self, name, net):
        # With SLURMLAB_FOR the next lab takes this one down if this script was killed before down().
        self.variables = {"SLURMLAB_NAME": name, "SLURMLAB_NET": net, "SLURMLAB_DIR": str(folder() / name),
                          "SLURMLAB_FOR": str(os.getpid())}

    def command(self, *words):
        # The words run on its login node, which is this network namespace.
        return ["env", *(f"{key}={value}" for key, value in self.variables.items()), SLURMLAB, *words]

    def up(self, nodes):
        """False if there is no Slurm to be had here."""
        if os.geteuid() or not shutil.which("slurmctld"):
            return False
        atexit.register(self.down)
        return subprocess.run(self.command("up", str(nodes)), capture_output=True).returncode == 0

    def down(self):
        subprocess.run(self.command("down"), capture_output=True)


_lab = []  # the one-node cluster once it was asked for, or None if there is none to be had


def _lab_is_up():
    if not _lab:
        lab = Lab("bench1", "10.94.0")
        _lab.append(lab if lab.up(1) else None)
        if not _lab[0]:
            note("srun left out: it needs root and slurm-wlm")
    return _lab[0] is not None


def lab_down():
    """Stops the one-node cluster if it was started; the next use starts it again."""
    if _lab and _lab[0]:
        _lab[0].down()
    _lab.clear()


def elastic(name):
    """The program of a subject with torchrun's command line."""
    return {"torchrun": TORCHRUN, "ddprun": DDPRUN}[name]


def command(name, workers, worker, options=(), timed=None):
    """The command line that starts so many workers with a launcher. timed: a file for the launcher's two times."""
    # The stopwatch starts the launcher itself, so Python's own time is not in the result.
    watch = tool("timed", timed) if timed else []
    if name == "floor":
        return [*watch, *tool("floor", workers), *worker]
    if name == "mpirun":
        # Without these two options Open MPI refuses to run as root, and to start more workers than cores.
        return [*watch, "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", workers, *options, *worker]
    if name == "srun":
        # The stopwatch runs inside the lab, so the time that `slurmlab run` takes is not in the result.
        task = ["srun", "-N1", "-n", workers, "--overcommit", "--mpi=none", *options, *worker]
        return _lab[0].command("run", *watch, *task)
    return [*watch, elastic(name), "--standalone", "--nproc-per-node", workers, *options, "--no-python", *worker]


def holding(name, workers):
    """A launcher whose workers do nothing but live: its process, and their process ids once all are in main()."""
    where = folder()
    launcher = start(command(name, workers, tool("hold", where)))
    # `tool hold` names its file after its process id, so the ids are right under every launcher.
    files = wait_until(lambda: len(found := list(where.glob("pid.*"))) == workers and found, 60)
    if not files:
        stop(launcher)
        raise TimeoutError("workers did not start")
    return launcher, [int(path.name.removeprefix("pid.")) for path in files]
