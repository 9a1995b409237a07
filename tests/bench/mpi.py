#!/usr/bin/env python3
"""Start of a program of MPI (MPICH): from exec of the launcher until the last of 64 ranks is through MPI_Init and a
barrier, under ddprun --pmi and under MPICH's own mpiexec.hydra."""
import shutil
import subprocess

from report import collect, main
from subjects import DDPRUN, note
from workplace import finish, folder, start, times, tool

RANKS = 64
# Each rank notes the time when it is through the barrier.
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <time.h>
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int rank = 0;
    char name[4096];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "%s/in.%d", argv[1], rank);
    FILE* file = fopen(name, "w");
    fprintf(file, "%lld\\n", now.tv_sec * 1000000000LL + now.tv_nsec);
    fclose(file);
    MPI_Finalize();
    return 0;
}
"""
_program = []  # compiled at the first use


def program():
    if not _program:
        where = folder()
        (where / "meet.c").write_text(PROGRAM)
        subprocess.run(["mpicc.mpich", "-O2", "-o", where / "meet", where / "meet.c"], check=True)
        _program.append(where / "meet")
    return _program[0]


def one_start(name, ranks):
    where = folder()
    launcher = {"hydra": ["mpiexec.hydra", "-n", ranks],
                "ddprun": [DDPRUN, "--standalone", "--nproc-per-node", ranks, "--pmi", "--no-python"]}[name]
    process = start([*tool("timed", where / "launcher"), *launcher, program(), where])
    code = finish(process, 120)
    met = times(where, "in.*")
    if code or len(met) != ranks:
        raise RuntimeError(f"exit code {code}, {len(met)} of {ranks} ranks met")
    return (max(met) - times(where, "launcher")[0]) / 1e6


def measure(options):
    if not shutil.which("mpicc.mpich") or not shutil.which("mpiexec.hydra"):
        note("hydra left out: no mpich and libmpich-dev")
        return []
    return collect(f"PMI start, {RANKS} ranks through MPI_Init and a barrier (ms)", ["hydra", "ddprun"],
                   options.repeats, lambda name: one_start(name, RANKS))


if __name__ == "__main__":
    main(measure)
