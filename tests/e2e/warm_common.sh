# shellcheck shell=bash
# What the tests of warm starts share. Sourced, after common.sh's own.

# A folder with a script (the words behind the name) and a folder for libraries, which is on PYTHONPATH.
new_folder() {
    folder=$work/$1
    mkdir -p "$folder/lib"
    export PYTHONPATH=$folder/lib
}

# The fork server's process id: a marked Python process that is no worker, and has no workers' descriptor.
server() {
    local id
    for id in $(marked); do
        [[ -e /proc/$id/fd/10 && $(cat "/proc/$id/comm") == python* ]] && echo "$id"
    done
    return 0
}

# The lines of the workers in a file: those that are not ddprun's. Several workers print in any order.
# Python's fault handler names threads by their addresses.
workers_lines() { sed '/^=====/,$d; s/hread 0x[0-9a-f]*/hread 0x/' "$1" | grep -v '^ddprun: ' | sort || true; }

# Runs a command cold and warm, and compares what comes of it: ddprun's arguments.
same_warm_and_cold() {
    local cold_code
    run 120 --standalone --no-label --max-restarts=0 --warm=off "$@"
    cold_code=$code
    workers_lines "$work/run.out" >"$work/cold.out"
    workers_lines "$work/run.err" >"$work/cold.err"
    run 120 --standalone --no-label --max-restarts=0 --warm=always -v "$@"
    expect_in "$work/run.err" 'a fork server for warm starts is ready'
    expect_not_in "$work/run.err" 'cold, because'
    expect_code "$cold_code"
    cmp <(workers_lines "$work/run.out") "$work/cold.out" || fail "other output of $*"
    cmp <(workers_lines "$work/run.err") "$work/cold.err" || fail "other errors of $*"
    expect_nothing_left 5
}
