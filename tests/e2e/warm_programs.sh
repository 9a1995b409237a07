#!/usr/bin/env bash
# Lightning, Hugging Face's Trainer and Accelerate, and a plain script restarted a thousand times: warm restarts lead to
# the weights that an undisturbed job has. Takes half an hour: only with tests/run.sh --long.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
source "$e2e/warm_common.sh"
need_built ddprun
programs=$root/build/programs-venv/bin/python
[[ -x $programs ]] || skip "no $programs; tests/run.sh --long makes it"
export PYTHONWARNINGS=ignore TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1
restarts=${RESTARTS:-50}
export STEPS=$((restarts + 4))

ready() { has "$work/job.err" 'a fork server for warm starts is ready'; }
weights() { grep -h '^weights' "$work/$1.out"; }
# Plays a program: name of the output, kind, crashes, arguments…
play() {
    local name=$1 kind=$2 crashes=$3; shift 3
    local folder=$work/$name-$kind
    mkdir -p "$folder"
    start job --standalone --no-label -v --nproc-per-node=2 --max-restarts=2000 --crash-loop=2000 --python "$programs" "$@" \
        "$e2e/warm/programs.py" "$kind" "$folder" "$crashes"
    if [[ $name == warm ]]; then wait_until 180 ready || fail "no server"; fi
    touch "$folder/go"
    if [[ $kind == ddp && $name == warm ]]; then look; fi
    join job 1800
    expect_code 0
    expect_nothing_left 5
    cp "$work/job.out" "$work/$name.out"
    cp "$work/job.err" "$work/$name.err"
    [[ -n $(weights "$name") ]] || fail "$kind has not told its weights"
}

say "a thousand restarts lead to the weights of an undisturbed job, and the server does not grow"
thousand=${THOUSAND:-1000}
memory() { awk '/^Pss:/ { print $2 }' "/proc/$1/smaps_rollup"; }
# Waits for a generation, and prints the server's memory (KiB) and how many files it and ddprun have open.
sizes() {
    wait_until 1200 has "$work/job.err" "generation $1: " || fail "generation $1 has not begun"
    wait_until 30 one_server || return 1
    echo "$id $(memory "$id") $(find "/proc/$id/fd" "/proc/${pid[job]}/fd" 2>/dev/null | wc -l)"
}
# A worker that is being forked looks like the server for a moment.
one_server() { id=$(server) && [[ $id =~ ^[0-9]+$ ]]; }
look() {
    read -r first memory files < <(sizes 10) || fail "there is no server"
    read -r last grown more < <(sizes $((thousand - 5))) || fail "there is no server"
    [[ $first == "$last" ]] || fail "the server of generation 10 is not that of the end"
    echo "the server's memory: $memory KiB after 10 restarts, $grown after $((thousand - 5)); descriptors: $files, $more"
    ((grown < memory * 11 / 10)) || fail "the server has grown from $memory to $grown KiB"
    ((more < files + 20)) || fail "$files open files have become $more"
}
STEPS=$((thousand + 4)) play undisturbed ddp 0 --warm=off
STEPS=$((thousand + 4)) play warm ddp "$thousand"
[[ $(weights warm) == "$(weights undisturbed)" ]] || fail "undisturbed $(weights undisturbed), warm $(weights warm)"
cold=$(grep -c 'cold, because\|this one is cold' "$work/warm.err" || true)
((cold == 0)) || fail "$cold of $thousand restarts were cold"

for kind in lightning trainer accelerate; do
    say "$kind: $restarts warm restarts, 3 cold ones and none lead to the same weights"
    play undisturbed "$kind" 0 --warm=off
    play cold "$kind" 3 --warm=off
    play warm "$kind" "$restarts"
    [[ $(weights warm) == "$(weights undisturbed)" && $(weights cold) == "$(weights undisturbed)" ]] ||
        fail "undisturbed $(weights undisturbed), cold $(weights cold), warm $(weights warm)"
    cold=$(grep -c 'cold, because\|this one is cold' "$work/warm.err" || true)
    ((cold == 0)) || fail "$cold of $restarts restarts were cold"
done
