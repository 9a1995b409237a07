#!/usr/bin/env bash
# examples/all_reduce.py and examples/python, unmodified, under torchrun and under ddprun: the same end and the same
# final numbers. Argument: debian (python3-torch) or current (the virtual environment of tests/run.sh).
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
need_built ddprun
need_localhost

# One cache for all runs: a model is compiled once.
mkdir "$work/caches" "$work/theirs.tmp"
export TORCHINDUCTOR_CACHE_DIR=$work/caches
examples=$root/examples/python

# Debian's torchrun cannot read its own defaults under Python 3.11. So its front end is called with that one function
# repaired.
cat >"$work/torchrun.py" <<'SHIM'
from torch.distributed.elastic.multiprocessing import api
from_str = api.Std.from_str.__func__
known = ("0", "1", "2", "3")
api.Std.from_str = classmethod(lambda cls, text: api.Std(int(text)) if text in known else from_str(cls, text))
from torch.distributed.run import main
main()
SHIM
# The final numbers of a run: file. Under torchrun the workers write into each other's lines.
results() { sed 's/RESULT/\n&/g' "$1" | grep '^RESULT' | sort; }
# Runs ddprun: seconds, arguments… FOLDER in an argument becomes a folder of the run's own.
ours() {
    local seconds=$1; shift
    for _ in 1 2 3; do
        folder=$work/ours && rm -rf "$folder" && mkdir "$folder"
        run "$seconds" --standalone --no-label "${@//FOLDER/$folder}"
        aborted_at_exit "$work/run.err" || break
    done
}
# Runs both launchers with the same arguments and compares their results: seconds, exit code of ddprun, arguments…
same() {
    local seconds=$1 expected=$2 theirs; shift 2
    for _ in 1 2 3; do
        folder=$work/theirs && rm -rf "$folder" && mkdir "$folder"
        theirs=0
        # What the restart of a newer torchrun needs, to not meet the dead attempt's keys.
        TMPDIR=$work/theirs.tmp TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 PET_MONITOR_INTERVAL=0.1 timeout "$seconds" \
            "$python" "$work/torchrun.py" --standalone "${@//FOLDER/$folder}" >"$work/theirs.out" \
            2>"$work/theirs.err" </dev/null || theirs=$?
        aborted_at_exit "$work/theirs.err" || break
    done
    ours "$seconds" "$@"
    expect_code "$expected"
    # torchrun exits with 1 after any failure.
    ((theirs == (expected ? 1 : 0))) || fail "torchrun ended with $theirs"
    [[ -n $(results "$work/run.out") ]] || fail "no result"
    diff <(results "$work/theirs.out") <(results "$work/run.out") >&2 || fail "the results differ"
    expect_nothing_left 5
}

say "the sum over all ranks"
same 100 0 --nproc_per_node=2 "$root/examples/all_reduce.py"
say "training with snapshots, undisturbed"
ours 100 --nproc_per_node=2 "$examples/ddp_resume.py" --snapshot FOLDER/calm.pt
expect_code 0
results "$work/run.out" >"$work/calm"
say "the same with a crash and a restart from the snapshot, under both launchers: the same numbers"
with_fork_server
same 150 0 --nproc_per_node=2 --max_restarts=1 "$examples/ddp_resume.py" --snapshot FOLDER/crash.pt --crash-at-step 25
diff "$work/calm" <(results "$work/run.out") >&2 || fail "the crash has changed the result"
export PET_WARM=off
say "it resumes with another number of workers, and does what is left"
snapshot=$work/ours/crash.pt
run 100 --standalone --no-label --python="$python" --nproc-per-node=3 "$examples/ddp_resume.py" \
    --snapshot "$snapshot" --steps 50
expect_code 0
(($(results "$work/run.out" | wc -l) == 3)) || aborted_at_exit "$work/run.err" || fail "not three results"
steps_of() {
    "$python" -c 'import sys, torch; saved = torch.load(sys.argv[1]); print(saved["step"], saved["done"])' "$snapshot"
}
[[ $(steps_of) == "50 $((40 * 32 + 10 * 48))" ]] || fail "the snapshot has step and samples $(steps_of)"
say "at a stop it saves and ends, before its time is over"
start job --standalone --no-label --python="$python" --nproc-per-node=2 "$examples/ddp_resume.py" \
    --snapshot "$snapshot" --steps 100000000
# The first snapshot of this job shows that it trains.
trains() { [[ $(stat -c %Y.%s.%i "$snapshot") != "$before" ]]; }
before=$(stat -c %Y.%s.%i "$snapshot")
wait_until 60 trains || fail "no snapshot"
kill -TERM "${pid[job]}"
join job 60
expect_code 143
(($(results "$work/job.out" | wc -l) == 2)) || fail "the workers did not end by themselves"
expect_nothing_left 5
if [[ $1 == debian && $bin == "$root/build/bin" ]]; then
    say "the quickstart plays it"
    code=0
    env -u VIRTUAL_ENV DDPRUN_TEST_MARK="$mark" timeout 200 "$root/examples/quickstart.sh" --pytorch \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    expect_code 0
    expect_in "$work/run.out" '^5\. both results have the same bits$'
fi

say "a convolutional network"
same 150 0 --nproc_per_node=2 "$examples/cnn.py"
say "process groups within the world"
same 100 0 --nproc_per_node=4 "$examples/subgroups.py"
say "workers that start processes"
same 150 0 --nproc_per_node=2 "$examples/spawns.py"
say "an error that @record reports"
same 100 1 --nproc_per_node=2 --max_restarts=0 "$examples/recorded.py"
for text in 'learning rate must not be negative: -0.5'; do
    expect_in "$work/run.err" "$text"
    expect_in "$work/theirs.err" "$text"
done
