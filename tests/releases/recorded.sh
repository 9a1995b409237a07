#!/usr/bin/env bash
# What earlier releases left on disk (tests/data/releases) serves this one: ddpctl reads the ledger, a job that was cut
# off continues in it, and its training goes on from the recorded snapshot to the bits of a run that nothing cut off.
# VERSIONS.md promises it.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/common.sh"
need_built ddprun ddpctl linear
need_program jq
releases=$root/tests/data/releases
[[ -d $releases/0.1.0 ]] || fail "there is no recorded release"

# Whether ddpctl history says so: ledger, filter of jq.
history_has() {
    "$bin/ddpctl" history --json --ledger="$1" >"$work/history.out" 2>"$work/history.err" || fail "ddpctl history"
    [[ $(jq "$2" "$work/history.out") == true ]] || fail "the history is not $2"
}
# A ddprun that calls itself a later version than each that has been recorded: the number stands once in the program.
number=$("$ddprun" --version | sed -n 's/^ddprun \([0-9.]*\),.*/\1/p')
LC_ALL=C sed "s/\b${number//./\\.}\b/9${number:1}/g" "$ddprun" >"$work/newer"
chmod +x "$work/newer"
[[ $("$work/newer" --version) == "ddprun 9${number:1},"* ]] || fail "no later version to be had"

for folder in "$releases"/*/; do
    version=$(basename "$folder")
    job=$work/$version
    cp -r "$folder" "$job"
    chmod -R go-rwx "$job" # git keeps no such modes
    cp "$root/tests/releases/worker" "$bin/linear" "$job/"

    say "ddpctl reads the ledger of $version"
    history_has "$job/ledger" '.state == "no_end" and (.entries | length == 2)'
    history_has "$job/ledger" '[.entries[] | .generation, .world_size, .restarts] == [0, 2, 0, 1, 2, 1]'

    say "a requeue that starts with a later version continues it"
    cp -r "$job" "$job.newer"
    code=0
    (cd "$job.newer" && DDPRUN_TEST_MARK=$mark timeout 60 "$root/tests/releases/job.sh" "$work/newer" 1) \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    expect_code 0
    expect_in "$work/run.err" 'continues after entry 1 '
    history_has "$job.newer/ledger" '.entries[-1].kind == "end"'
    expect_nothing_left

    say "its job continues, and its training from the snapshot at step 24"
    began=$SECONDS
    code=0
    (cd "$job" && DDPRUN_TEST_MARK=$mark timeout 60 "$root/tests/releases/job.sh" "$ddprun" 1) \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    in_time 60 "$began" || fail "the job did not end"
    expect_code 0
    expect_in "$work/run.err" 'continues after entry 1 \(generation 1, written by 127\.0\.0\.1\)'
    expect_in "$work/run.err" 'generation 2: 1 node, 2 workers'
    expect_in "$work/run.out" 'resumed from snapshot-000000000024-g0 at step 24'
    [[ $(checksum_of "$work/run.out") == "$(<"$job/checksum.txt")" ]] || fail "other weights"
    history_has "$job/ledger" '.entries[-1].kind == "end"'
    expect_nothing_left

    say "an entry of a later format is named, not misread"
    sed -i 's/ddprun ledger entry [0-9]*/ddprun ledger entry 999/' "$job"/ledger/lab.88.0/entry-000001.json
    history_has "$job/ledger" '.entries | length == 1'
    "$bin/ddpctl" history --ledger="$job/ledger" >"$work/history.out" 2>"$work/history.err" || fail "ddpctl history"
    expect_in "$work/history.out" 'entry-000001\.json has an unknown ledger entry format: a newer ddprun has written it'
    code=0
    (cd "$job" && DDPRUN_TEST_MARK=$mark timeout 60 "$root/tests/releases/job.sh" "$ddprun" 2) \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
    expect_code 69
    expect_in "$work/run.err" 'a newer ddprun has written it; start the job with that version again'
    expect_nothing_left
done
