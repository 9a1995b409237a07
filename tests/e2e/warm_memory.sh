#!/usr/bin/env bash
# What one job leaves for the next one of its script: the imports, so that the first generation may be warm, too.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$e2e/warm_common.sh"
need_built ddprun
need_program python3
export PYTHONDONTWRITEBYTECODE=1
crowd=$(($(OMP_NUM_THREADS="" nproc) + 1)) # more workers than CPUs

# A script that imports many modules from the folder's library. One of them counts its imports.
new_library() {
    new_folder "$1"
    mkdir "$folder/lib/many"
    : >"$folder/lib/many/__init__.py"
    for number in {1..320}; do echo "VALUE = $number" >"$folder/lib/many/m$number.py"; done
    printf 'VALUE = 1\nopen("%s/imports", "a").write("once\\n")\n' "$folder" >"$folder/lib/counted.py"
    cat >"$folder/train.py" <<'END'
import importlib, os, sys, time
import counted
for number in range(1, 321):
    importlib.import_module("many.m%d" % number)
time.sleep(0.01)  # imports are written with a later one
import colorsys
os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
sys.stdout.write("rank %s counted %d\n" % (os.environ["RANK"], counted.VALUE))
end = time.monotonic() + 60
while not os.path.exists(sys.argv[1]) and time.monotonic() < end:
    time.sleep(0.01)
END
}
imports() { if [[ -e $folder/imports ]]; then wc -l <"$folder/imports"; else echo 0; fi; }
remembered() { ls "$XDG_CACHE_HOME/ddprun/imports/"train.py-* 2>/dev/null; }
is_remembered() { [[ -n $(remembered) ]]; }
ranks() { (($(grep -c '^rank' "$work/job.out") == $1)); }
# Runs a job of the folder's script until it has said something: pattern of standard error, arguments…
job_until() {
    local pattern=$1; shift
    rm -f "$folder/imports" "$folder/go"
    start job --standalone --no-label -v --max-restarts=0 "$@" "$folder/train.py" "$folder/go"
    wait_until 30 has "$work/job.err" "$pattern" || fail "no \"$pattern\""
}
end_job() { # workers
    wait_until 30 ranks "$1" || fail "not all workers have started"
    touch "$folder/go"
    join job 30
    expect_code 0
    expect_nothing_left 5
}

say "a job remembers what its workers import, and the next one imports it once for all of them"
new_library memory
job_until 'a fork server for warm starts is ready' --nproc-per-node="$crowd"
end_job "$crowd"
(($(imports) == crowd + 1)) || fail "$crowd workers and a server have imported $(imports) times"
[[ $(stat -c %a "$XDG_CACHE_HOME/ddprun/imports") == 700 ]] || fail "others may read what is remembered"
[[ $(remembered | wc -l) == 1 ]] || fail "not one file: $(remembered)"
job_until 'a fork server for warm starts is ready' --nproc-per-node="$crowd"
end_job "$crowd"
(($(imports) == 1)) || fail "the second job has imported $(imports) times"

say "with a CPU for each worker the first generation does not wait for a server"
job_until 'generation 0' --nproc-per-node=1
end_job 1
(($(imports) == 1)) || fail "one worker has imported $(imports) times"
expect_not_in "$work/job.err" 'fork server'

say "a library that has moved makes the job forget what it knew, and start cold"
mkdir "$folder/lib/counted"
mv "$folder/lib/counted.py" "$folder/lib/counted/__init__.py"
job_until 'are forgotten, because .*another place' --nproc-per-node="$crowd"
wait_until 20 ranks "$crowd" || fail "the workers have not started"
wait_until 30 has "$work/job.err" 'a fork server for warm starts is ready' || fail "nothing was learnt anew"
end_job "$crowd"
job_until 'a fork server for warm starts is ready' --nproc-per-node="$crowd"
end_job "$crowd"
(($(imports) == 1)) || fail "the job after it has imported $(imports) times"

say "a node that waits has a server ready when its turn comes"
at=127.0.0.1:$(free_port)
node() { # name, number
    start "$1" --nnodes=2 --node-rank="$2" --rdzv-endpoint="$at" --rdzv-id="$mark" --no-label -v --max-restarts=0 \
        "$folder/train.py" "$folder/go"
}
rm -f "$folder/imports" "$folder/go"
node job 0
wait_until 30 has "$work/job.err" 'a fork server for warm starts is ready' || fail "the waiting node has no server"
(($(imports) == 1)) || fail "the server has imported $(imports) times"
node other 1
wait_until 30 has "$work/other.out" '^rank' || fail "the other node's worker has not started"
wait_until 30 ranks 1 || fail "the worker has not started"
(($(imports) == 2)) || fail "a server and a cold worker have imported $(imports) times"
touch "$folder/go"
join job 30
expect_code 0
join other 30
expect_nothing_left 5

say "a check says what a server would save, what it leaves out, and why a start would be cold"
printf 'import os\nRANK = os.environ["RANK"]\n' >"$folder/lib/reader.py"
check() { # what its row says, arguments…
    local row=$1; shift
    run 40 --check --standalone "$@"
    expect_in "$work/run.out" "^  warm  *$row"
    expect_nothing_left 5
}
check 'ok .* import 32[0-9] modules; a cold worker reads [0-9]* files for them, with [0-9]* looks' "$folder/train.py" go
echo 'import reader, json' >"$folder/other.py"
check 'ok .*left out: reader \(it reads RANK\)' "$folder/other.py"
check '- .*no Python workers, or --warm=off' --warm=off "$folder/train.py"
check '- .*no Python workers' true
printf '#!/bin/sh\nexec python3 -I "$@"\n' >"$folder/python3"
chmod +x "$folder/python3"
check '- .*cold starts, because the interpreter does not read a sitecustomize' --python "$folder/python3" "$folder/train.py"
[[ -z $(ls "$TMPDIR") ]] || fail "the check has left $(ls "$TMPDIR")"

say "a file that is something else is as good as none"
file=$(remembered)
for kind in garbage cut link fifo folder; do
    rm -rf "$file"
    case $kind in
        garbage) head -c 5000 /dev/urandom >"$file" ;;
        cut) printf 'ddprun imports 1\nimport counted' >"$file" ;;
        link) ln -s /dev/zero "$file" ;;
        fifo) mkfifo "$file" ;;
        folder) mkdir "$file" ;;
    esac
    job_until 'generation 0' --nproc-per-node="$crowd"
    end_job "$crowd"
    (($(imports) >= crowd)) || fail "$kind: $crowd workers have imported $(imports) times"
done
rm -rf "$file"

say "without a folder to remember in, jobs run as ever"
for cache in /proc/nowhere relative ""; do
    XDG_CACHE_HOME=$cache HOME=$cache job_until 'a fork server for warm starts is ready' --nproc-per-node=2
    end_job 2
    [[ ! -e relative ]] || fail "a relative folder was made"
done

say "torchrun's name means cold starts, unless warm ones are asked for"
ln -s "$ddprun" "$work/torchrun"
ddprun=$work/torchrun job_until 'generation 0' --nproc-per-node="$crowd"
end_job "$crowd"
sleep 1.5 # a server would be prepared a second after the first progress
expect_not_in "$work/job.err" 'fork server'

say "a temporary folder without room makes the start cold, and no worker sees half a file of ours"
if ((EUID == 0)) && unshare --mount true 2>/dev/null; then
    script=$(mktemp -d -p /var/tmp)
    echo 'import os, sys; sys.stdout.write("ran %d\n" % sum(name.startswith("DDPRUN_WARM") for name in os.environ))' >"$script/small.py"
    for size in 8k 24k 36k; do
        code=0
        # shellcheck disable=SC2016
        DDPRUN_TEST_MARK=$mark timeout 30 unshare --mount bash -c \
            'for where in /dev/shm /tmp; do mount -t tmpfs -o size="$0" none "$where"; done; cd / && exec "$@"' "$size" \
            env -u TMPDIR XDG_CACHE_HOME=/nowhere "$ddprun" --standalone --no-label --nproc-per-node="$crowd" --warm=always \
            "$script/small.py" >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
        expect_code 0
        (($(grep -c '^ran 0' "$work/run.out") == crowd)) || fail "$size: the workers have run otherwise"
        expect_in "$work/run.err" 'started cold, because there is no room'
        expect_not_in "$work/run.err" 'sitecustomize'
    done
    rm -r "$script"
fi

say "a module that hangs when the server imports it delays nobody's restart"
new_folder hangs
cat >"$folder/lib/hanging.py" <<'END'
import os, time
if "RANK" not in os.environ:
    time.sleep(1000)
END
cat >"$folder/train.py" <<'END'
import os, sys, time
import hanging
generation = os.environ["TORCHELASTIC_RESTART_COUNT"]
os.write(int(os.environ["DDPRUN_PROGRESS_FD"]), b"step=1\n")
sys.stdout.write("generation %s\n" % generation)
time.sleep(3)
sys.exit(3 if generation == "0" else 0)
END
run 40 --standalone --no-label -v --nproc-per-node=2 --max-restarts=1 "$folder/train.py"
expect_code 0
(($(grep -c '^generation 1' "$work/run.out") == 2)) || fail "generation 1 has not run"
expect_nothing_left 5
