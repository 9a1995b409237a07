#!/usr/bin/env bash
# Who waits for whom with NCCL, as its RAS has it. A double of RAS (ras_double) answers in the words of NCCL's versions:
# no GPU is needed. All jobs run at the same time, since each has to stand still for a while.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl ../tests/ras_double
double=$(dirname "$DDPRUN_BIN")/tests/ras_double
worker=$(dirname "${BASH_SOURCE[0]}")/nccl_worker.py

# A job of three workers: name, fault, version and mode of the double, then options.
play() {
    local name=$1 fault=$2 version=$3 mode=$4; shift 4
    mkdir "$work/$name"
    fault=$fault start "$name" --standalone -v --nproc-per-node=3 --lease=2 --max-restarts=0 \
        --log-dir="$work/$name/logs" "$@" python3 "$worker" "$double" "$work/$name" "$version" "$mode"
}
(umask 077; head -c 32 /dev/urandom | base64 >"$work/secret")
asked=(--ledger="directory:$work/ledger" --secret-file="$work/secret")
play json behind 2.29 "" --rdzv-id="$mark" "${asked[@]}"
play text behind 2.24 ""
play stopped stopped 2.27 ""
play even none 2.29 ""
play half behind 2.29 half
play garbage behind 2.27 garbage
play hung behind 2.29 "" --hang-timeout=5

waits='2 ranks have waited for [0-9.]+ s in a collective, in all_reduce .[^ ]+:[0-9]+., for rank 1 .local 1 on [^ ]+.'
evaluates="$waits, which (sleeps|waits|reads) in evaluate .[^ ]+:[0-9]+."
say "the line names the rank that is behind, where it is, and the numbers"
numbers="as NCCL has it, rank 1 has launched 40 AllReduce operations, and 2 ranks 41"
wait_until 60 has "$work/json.err" "$evaluates; $numbers" ||
    fail "json: no line"
wait_until 60 has "$work/text.err" "$evaluates; as NCCL has it, rank 1 has launched 40 operations, and 2 ranks 41" ||
    fail "text: no line"
stopped="$waits, which is stopped by a signal .*; as NCCL has it, .*process [0-9]+ on 127.0.0.1.* does not answer"
wait_until 60 has "$work/stopped.err" "$stopped" ||
    fail "stopped: no line"

say "what NCCL tells people is kept beside the workers' stacks"
wait_until 20 compgen -G "$work/json/logs/*/attempt_0/nccl_ras.txt" >/dev/null || fail "not kept"
expect_in "$(compgen -G "$work/json/logs/*/attempt_0/nccl_ras.txt")" 'Rank 1 has launched up to operation 40'

say "ddpctl says it, too"
ctl() {
    timeout 60 "$bin/ddpctl" "$@" "${asked[@]}" >"$work/ctl.out" 2>"$work/ctl.err" </dev/null || fail "ddpctl $1: $?"
}
ctl why
expect_in "$work/ctl.out" "$waits.*; $numbers"
ctl stacks 0
expect_in "$work/ctl.out" 'NCCL: rank 1 has launched 40 AllReduce operations, and 2 ranks 41'

say "with --hang-timeout it is a verdict"
join hung 60
expect_code 124
expect_in "$work/hung.err" "$waits.*; $numbers"

say "where no rank is behind, or NCCL cannot be understood, nothing is said; and nobody is stopped"
for name in even half garbage; do expect_not_in "$work/$name.err" 'have waited|has waited|as NCCL has it'; done

say "each job has a port of its own, all its workers the same one"
ports_of() { # name
    local file
    for file in "$work/$1"/rank_?; do
        tr '\0' '\n' <"/proc/$(cut -d' ' -f1 "$file")/environ" | grep '^NCCL_RAS_ADDR='
    done
}
[[ $(ports_of json | sort -u) =~ ^NCCL_RAS_ADDR=127.0.0.1:[0-9]+$ ]] || fail "ports of a job: $(ports_of json)"
[[ $(ports_of json | sort -u) != "$(ports_of text | sort -u)" ]] || fail "two jobs have the same port"

say "the job goes on when the rank has come"
for name in json text even half garbage; do touch "$work/$name/go_on"; done
kill -CONT "$(cut -d' ' -f1 "$work/stopped/rank_1")"
touch "$work/stopped/go_on"
for name in json text even half garbage stopped; do
    join $name 60
    expect_code 0
done
expect_nothing_left

say "a port of the user's stays, and the name torchrun sets none"
NCCL_RAS_ADDR=127.0.0.1:28111 run 60 --standalone bash -c 'echo "has ${NCCL_RAS_ADDR-none}"'
expect_in "$work/run.out" 'has 127.0.0.1:28111$'
ln -s "$ddprun" "$work/torchrun"
ddprun=$work/torchrun run 60 --standalone --no-python bash -c 'echo "has ${NCCL_RAS_ADDR-none}"'
expect_in "$work/run.out" 'has none$'
expect_nothing_left
