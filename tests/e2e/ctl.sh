#!/usr/bin/env bash
# ddpctl after real jobs: what it shows of them, what it removes, and what it leaves alone. Its completion and manual
# page.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl
ddpctl=$bin/ddpctl
cd "$work"

# Runs ddpctl to its end: arguments… Sets code; output in $work/ctl.out and ctl.err.
ctl() { code=0; timeout 20 "$ddpctl" "$@" >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || code=$?; }
# Runs a job with a ledger to its end: its name, code, program…
job() {
    local name=$1 want=$2; shift 2
    run 60 --nnodes=1 --rdzv-endpoint=127.0.0.1:0 --rdzv-id="$name" --ledger=directory:.ddprun --no-python \
        --nproc-per-node=1 "$@"
    expect_code "$want"
}

say "there is no job yet"
ctl jobs
expect_code 0
expect_in ctl.out '^no job has a ledger in .ddprun$'
[[ ! -e .ddprun ]] || fail "ddpctl has made a folder"

say "two jobs that ended, and one that was killed with its ledger"
job good 0 /bin/true
job bad 7 --max-restarts=1 /bin/sh -c 'exit 7'
start killed --nnodes=1 --rdzv-endpoint=127.0.0.1:0 --rdzv-id=killed --ledger=directory:.ddprun --no-python \
    --nproc-per-node=1 sleep 100
wait_until 20 test -e .ddprun/killed/entry-000000.json || fail "no generation"
is_shown() { ctl jobs && has ctl.out "$1"; } # pattern
wait_until 20 is_shown '^killed +runs as [0-9]+ +0 +0 ' || fail "it is not shown as running"
[[ $(sed -n '2s/ .*//p' ctl.out) == killed ]] || fail "what runs does not come first"
kill_tree "${pid[killed]}"
ctl jobs
expect_code 0
expect_in ctl.out '^killed +no end; last entry [0-9]+ s ago +0 +0 '
expect_in ctl.out '^good +succeeded +0 +0 +[0-9.]+ KiB  20[0-9-]{8} [0-9:]{5}Z  20'
expect_in ctl.out '^bad +failed with 7 +1 +1 '
expect_in ctl.out '^killed +no end; last entry '
expect_in ctl.out '^3 ledgers, [0-9.]+ KiB in .ddprun$'
expect_not_in ctl.out $'\x1b'
ctl --json jobs
python3 - ctl.out <<'P' || fail "not the JSON"
import json, sys
jobs = {job["name"]: job for job in json.load(open(sys.argv[1]))["jobs"]}
assert jobs["good"]["state"] == "succeeded" and jobs["good"]["exit_code"] == 0, jobs
assert jobs["bad"]["state"] == "failed" and jobs["bad"]["exit_code"] == 7 and jobs["bad"]["generation"] == 1, jobs
assert jobs["killed"]["state"] == "no_end" and jobs["killed"]["ended"] is None, jobs
assert all(job["bytes"] > 0 for job in jobs.values()), jobs
P

say "the history of a job: each generation, and the parts of its time"
ctl history
expect_code 2
expect_in ctl.err '^ddpctl: 3 jobs have ledgers here; choose one with --ledger=PATH: .ddprun/good, '
ctl history --ledger=.ddprun/bad
expect_code 0
expect_in ctl.out '^bad: failed with 7$'
expect_in ctl.out 'Z  generation 1: 1 node, 1 worker, led by .*; 1 of 1 restarts used up; cause: .*exited with 7'
expect_in ctl.out 'Z  end: worker_failed, exit code 7; '
expect_in ctl.out '^1 restart, '
ctl history --json --ledger=.ddprun/bad
python3 - ctl.out <<'P' || fail "not the JSON of a history"
import json, sys
history = json.load(open(sys.argv[1]))
assert [entry["kind"] for entry in history["entries"]] == ["generation", "generation", "end"], history
assert history["restarts_by_cause"]["worker"] == 1 and sum(history["restarts_by_cause"].values()) == 1, history
assert history["entries"][1]["restart_seconds"]["detected"] > 0, history
P
SLURM_JOB_ID=good ctl history
expect_code 0
expect_in ctl.out '^good: succeeded$'

say "where the time of a job went: all of it, and what no snapshot has kept"
before=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
job saves 0 --max-restarts=1 /bin/sh -c 'echo "step=1" >&$DDPRUN_PROGRESS_FD; sleep 0.2
    echo "step=2 snapshot=2 snapshot_ms=50" >&$DDPRUN_PROGRESS_FD; sleep 0.5
    [ "$TORCHELASTIC_RESTART_COUNT" = 1 ]'
after=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
expect_in run.err ' of [0-9.]+ s, [0-9.]+ s were training that is kept \([0-9]+ %\)$'
expect_not_in run.err ' the rest: '  # nothing of it took a second
expect_in run.err ' restarts by cause: 1 failed worker$'
ctl history --json --ledger=.ddprun/saves
python3 - ctl.out "$before" "$after" <<'P' || fail "not the times of that job"
import datetime, json, sys
history = json.load(open(sys.argv[1]))
of = lambda text: datetime.datetime.fromisoformat(text[:-1])
begun, until, parts = of(history["time_from"]), of(history["time_until"]), history["seconds"]
assert of(sys.argv[2]) <= begun < until <= of(sys.argv[3]), history
assert abs(sum(parts.values()) - (until - begun).total_seconds()) < 0.002, history
assert abs(parts["saving"] - 0.1) < 1e-6, parts
assert 0.4 < parts["lost"] and 0.4 < parts["training"] and parts["restarting"] > 0 and parts["importing"] > 0, parts
P

say "on a terminal the states have colours, unless NO_COLOR forbids it"
TERM=xterm script -qec "$ddpctl jobs" /dev/null >ctl.out </dev/null
expect_in ctl.out $'\x1b\\[32msucceeded'
TERM=xterm NO_COLOR=1 script -qec "$ddpctl jobs" /dev/null >ctl.out </dev/null
expect_not_in ctl.out $'\x1b'

say "nothing goes unasked, and what may run goes only by name and with force"
ctl forget
expect_code 2
ctl forget --older-than=1d
expect_code 0
expect_in ctl.out '^removed 0 ledgers, 0 B$'
ctl forget killed
expect_code 1
expect_in ctl.out '^killed is left alone: it has recorded no end and may run, so --force is needed$'
ctl forget nobody
expect_code 1
expect_in ctl.err '^ddpctl: nobody: no job of this name has a ledger here; see ddpctl jobs$'
ctl forget --older-than=0s --dry-run
expect_in ctl.out '^would remove 3 ledgers, '
[[ -e .ddprun/good/ledger.json && -e .ddprun/bad/ledger.json ]] || fail "a dry run has removed something"

say "what cannot be read is no ledger of ours to remove; it is said what to do"
(umask 077; mkdir .ddprun/torn; echo '{' >.ddprun/torn/ledger.json)
ctl forget torn --force
expect_code 1
expect_in ctl.out '^torn is left alone: it cannot be read \(.*is truncated or is not JSON\);'
expect_in ctl.out '; if no job needs it, remove .ddprun/torn$'
rm -r .ddprun/torn

say "a file that is no ledger's keeps all of its folder"
echo mine >.ddprun/bad/notes.txt
ctl forget --older-than=0s
expect_code 0
expect_in ctl.out '^removed good: succeeded, '
[[ ! -e .ddprun/good && -e .ddprun/bad/ledger.json && -e .ddprun/killed/ledger.json ]] || fail "not as it should be"
ctl forget bad --force
expect_code 1
expect_in ctl.out '^bad is left alone: it cannot be read .*has a file that no ledger has: notes.txt'
rm .ddprun/bad/notes.txt
ctl forget bad killed --force
expect_code 0
[[ -z $(ls -A .ddprun) ]] || fail "left: $(ls -A .ddprun)"

say "a job goes on in a folder from which its predecessor was removed"
job good 0 /bin/true
ctl forget good
expect_code 0
job good 0 /bin/true
ctl jobs --ledger=.ddprun/good
expect_in ctl.out '^1 ledger, '

say "completion, in bash; other shells check the syntax if they are installed"
bash -n <("$ddpctl" --print-completion=bash) || fail "not bash"
complete_words() {
    # shellcheck disable=SC1090
    (source <("$ddpctl" --print-completion=bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _ddpctl && printf '%s\n' "${COMPREPLY[@]}") || true
}
complete_words ddpctl fo >ctl.out; expect_in ctl.out '^forget$'
complete_words ddpctl forget --o >ctl.out; expect_in ctl.out '^--older-than$'
complete_words ddpctl --json jobs --l >ctl.out; expect_in ctl.out '^--ledger$'
complete_words ddpctl jobs --ledger = .dd >ctl.out; expect_in ctl.out '^.ddprun$'
complete_words ddpctl jobs --o >ctl.out; expect_not_in ctl.out older
for shell in zsh fish; do
    "$ddpctl" --print-completion=$shell >completion.out
    if command -v $shell >/dev/null; then $shell -n completion.out || fail "not $shell"; fi
done

say "the manual page: groff formats it without a warning"
if command -v groff >/dev/null; then
    "$ddpctl" --print-man | groff -man -Tutf8 -ww >man.out 2>man.err
    [[ ! -s man.err ]] || fail "groff complains"
    expect_in man.out 'older-than'
fi
"$ddpctl" --help | head -n 1 >ctl.out
expect_in ctl.out '^Usage: ddpctl COMMAND'

expect_nothing_left
