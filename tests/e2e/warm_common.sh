# shellcheck shell=bash
# What the tests of warm starts share. Sourced, after common.sh's own.

# Else each job has an address of its own, and two jobs would differ in it.
export NCCL_RAS_ADDR=localhost:28028

# A Python of the test's own, whose packages are files that the test writes: a server imports a package by its version
# (warm/bootstrap/_ddprun_proved.py). Sets python and site.
new_python() {
    python3 -m venv --without-pip "$work/venv" || skip "python3 -m venv does not work"
    python=$work/venv/bin/python
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    export PYTHONDONTWRITEBYTECODE=1
}
# Installs a module, whose text comes from standard input: name, version. One that is on the list stands in for it.
package() {
    mkdir -p "$site/$1-$2.dist-info"
    cat >"$site/$1.py"
}

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
ready='a fork server for warm starts is ready'

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
    expect_in "$work/run.err" "$ready"
    expect_not_in "$work/run.err" 'cold, because'
    expect_code "$cold_code"
    cmp <(workers_lines "$work/run.out") "$work/cold.out" || fail "other output of $*"
    cmp <(workers_lines "$work/run.err") "$work/cold.err" || fail "other errors of $*"
    expect_nothing_left 5
}
