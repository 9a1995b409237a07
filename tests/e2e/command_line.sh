#!/usr/bin/env bash
# ddprun called by the name torchrun, by the completion of a shell, and for its manual page: what is started, and with
# which arguments.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun

say "completion, in bash"
bash -n <("$ddprun" --print-completion=bash) || fail "not bash"
# Prints what bash would offer for the last word: the words of the line.
complete_words() {
    # shellcheck disable=SC1090
    (source <("$ddprun" --print-completion=bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _ddprun && printf '%s\n' "${COMPREPLY[@]}") || true
}
# Checks that one of the replies is this: reply, words of the line.
expect_reply() {
    local reply=$1; shift
    complete_words "$@" >"$work/reply.out"
    expect_in "$work/reply.out" "^$reply\$"
}
expect_reply --nproc-per-node ddprun --nproc
expect_reply gpu ddprun --nproc-per-node g
# bash passes "=" as a word of its own.
expect_reply gpu ddprun --nproc_per_node = g
expect_reply exclusive ddprun --numa-binding = ''
(cd "$work" && touch train.py && expect_reply train.py ddprun --standalone tr)
# A shell that is installed checks the syntax itself.
for shell in zsh fish tcsh; do
    "$ddprun" --print-completion=$shell >"$work/completion.out"
    expect_in "$work/completion.out" nproc-per-node
    if command -v $shell >/dev/null; then $shell -n "$work/completion.out" || fail "not $shell"; fi
done

say "the manual page: groff formats it without a warning"
if command -v groff >/dev/null; then
    "$ddprun" --print-man | groff -man -Tutf8 -ww >"$work/man.out" 2>"$work/man.err"
    [[ ! -s $work/man.err ]] || fail "groff complains"
    expect_in "$work/man.out" 'nproc-per-node'
fi

say "called as torchrun: torchrun's defaults, and every program runs under Python"
mkdir "$work/venv"
# A folder like that of a virtual environment. Its python3 prints the arguments and the number of threads.
ln -s "$ddprun" "$work/venv/torchrun"
printf '#!/bin/sh\necho "python $*"\necho "threads ${OMP_NUM_THREADS-unset}"\n' >"$work/venv/python3"
chmod +x "$work/venv/python3"
# Runs that torchrun to its end: arguments… Sets code; output in $work/run.out and run.err.
as_torchrun() {
    code=0
    env -u OMP_NUM_THREADS -u VIRTUAL_ENV -u PYTHON_EXEC DDPRUN_TEST_MARK="$mark" timeout 30 "$work/venv/torchrun" "$@" \
        >"$work/run.out" 2>"$work/run.err" </dev/null || code=$?
}
echo >"$work/train"
# torchrun replaces ${local_rank} and reads $$ as one dollar.
as_torchrun "$work/train" --nnodes 3 -- x '$$a' '${local_rank}'
expect_code 0
expect_in "$work/run.out" "^python -u $work/train --nnodes 3 -- x \\\$a 0\$"
expect_in "$work/run.out" '^threads unset$'
# With several workers torchrun sets OMP_NUM_THREADS to 1.
as_torchrun --nproc-per-node=2 -m "pkg.train"
expect_in "$work/run.out" '^python -u -m pkg.train$'
expect_in "$work/run.out" '^threads 1$'
as_torchrun --no-python --max-restarts=0 bash -c 'echo $TORCHELASTIC_MAX_RESTARTS'
expect_in "$work/run.out" '^0$'

say "called as ddprun: \$\$ stays as it is, and \${local_rank} is replaced"
run 20 --standalone --nproc-per-node=2 --no-label bash -c 'echo "${local_rank} $1 $$ $BASHPID"' x '$local_rank'
expect_in "$work/run.out" '^0 0 ([0-9]+) \1$'
expect_in "$work/run.out" '^1 1 ([0-9]+) \1$'

say "Python comes from PYTHON_EXEC, the virtual environment or PATH, and the log names it"
echo 'import sys; print("real")' >"$work/train.py"
PYTHON_EXEC=$work/venv/python3 run 20 --standalone "$work/train.py"
expect_in "$work/run.out" "^python -u $work/train.py\$"
expect_in "$work/run.err" "interpreter of the workers is $work/venv/python3"
mkdir -p "$work/env/bin" && ln -s ../../venv/python3 "$work/env/bin/python3"
VIRTUAL_ENV=$work/env run 20 --standalone "$work/train.py"
expect_in "$work/run.err" "interpreter of the workers is $work/env/bin/python3"
# Called by its path, as a batch script that activates nothing does it: what pip has installed takes its own Python.
for sign in pyvenv.cfg conda-meta none; do
    mkdir -p "$work/$sign/bin"
    ln "$work/venv/python3" "$work/$sign/bin/python3"
    ln -s "$ddprun" "$work/$sign/bin/ddprun"
    [[ $sign == none ]] || touch "$work/$sign/$sign"
    (unset VIRTUAL_ENV PYTHON_EXEC && ddprun=$work/$sign/bin/ddprun run 20 --standalone "$work/train.py")
    [[ $sign == none ]] && python=python3 || python=$work/$sign/bin/python3
    expect_in "$work/run.err" "interpreter of the workers is $python(\$|, )"
done
(unset VIRTUAL_ENV PYTHON_EXEC && ddprun=$work/pyvenv.cfg/bin/ddprun && PATH=$work/venv:$work/pyvenv.cfg//bin:$PATH &&
    run 20 --standalone "$work/train.py")
expect_in "$work/run.err" "interpreter of the workers is python3, found in PATH as $work/venv/python3"
PATH=$work/venv:$PATH run 20 --standalone "$work/train.py"
expect_in "$work/run.out" "^python -u $work/train.py\$"
expect_in "$work/run.err" "interpreter of the workers is python3, found in PATH as $work/venv/python3"

say "under nohup SIGHUP is ignored"
(trap '' HUP; DDPRUN_TEST_MARK=$mark exec "$ddprun" --standalone bash -c 'until [[ -e $0/go ]]; do sleep 0.05; done' "$work" \
    >"$work/job.out" 2>"$work/job.err" </dev/null) &
pid[job]=$!
wait_until 10 count_is "bash -c until [[ -e \$0/go ]]; do sleep 0.05; done $work" 1 || fail "the worker does not run"
kill -HUP "${pid[job]}"
touch "$work/go"
join job 20
expect_code 0
expect_nothing_left

say "--signals-to-handle adds to the four signals that always stop the job"
for signal in USR1 TERM; do
    start job --standalone --signals-to-handle=SIGUSR1 bash -c 'trap "echo got it; exit 0" USR1 TERM; echo up; while :; do sleep 310 & wait; done'
    wait_until 10 count_is "sleep 310" 1 || fail "the worker does not run"
    kill -"$signal" "${pid[job]}"
    join job 20
    expect_code $((128 + $(kill -l "$signal")))
    expect_in "$work/job.out" 'got it'
    expect_nothing_left
done
