#!/usr/bin/env bash
# Runs each command of the documentation on this host, as it stands there: page by page, each in an empty folder, in one
# shell. What cannot exist here has a stand-in: podman, and the reader's own train.py. PAGES=PATTERN selects pages.
# With the argument `lightning` only the blocks that need Lightning are run, else all others.
# In a namespace of its own the ports of the pages cannot collide with another test's.
if ((EUID == 0)) && [[ -z ${DOCS_ISOLATED:-} ]] && unshare --net true 2>/dev/null; then
    export DOCS_ISOLATED=1
    exec unshare --net sh -c 'ip link set lo up && exec bash "$@"' sh "$0" "$@"
fi
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/common.sh"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddpctl ddprun-rendezvous linear smallest smallest_mpi
/usr/bin/python3 -c 'import torch' 2>"$work/import.err" || skip "/usr/bin/python3 has no torch"
[[ ${1-} != lightning || -x $root/build/programs-venv/bin/python ]] ||
    skip "no Lightning; tests/run.sh --long installs it"
assemble
export HOME=$work/home GLOO_SOCKET_IFNAME=lo TORCH_CPP_LOG_LEVEL=ERROR DOCS_EPOCH=0.2
mkdir "$HOME"

# Whether a block is for this run: what it needs.
only=${1-}
wanted() { if [[ $only == lightning ]]; then [[ $1 == lightning ]]; else [[ $1 != lightning ]]; fi; }

# Which Python a block needs: what its comment says.
python_for() {
    case $1 in
        lightning) echo "$root/build/programs-venv/bin/python" ;;
        current) echo "$root/build/torch-venv/bin/python" ;;
        *) echo /usr/bin/python3 ;;
    esac
}

# Runs one block in this shell, for two minutes at most: file, name of the output. Sets codes: those of commands that
# failed.
run_block() {
    local watch
    codes=()
    (sleep 120; marked | xargs -r kill -9) 2>/dev/null &
    watch=$!
    disown
    set +e -E # -E: the trap counts for what is sourced, too
    trap 'codes+=($?)' ERR
    export DDPRUN_TEST_MARK=$mark
    # shellcheck disable=SC1090
    source "$1" >"$2" 2>&1 </dev/null
    unset DDPRUN_TEST_MARK
    trap - ERR
    set -e +E
    pkill -P "$watch" || true
}

play_page() { # path below the pages
    local folder=$work/run line says block output expected needs
    rm -rf "$folder"
    prepare "$1" here "$folder"
    cd "$folder"
    while IFS=$'\t' read -r line says; do
        block=.blocks/$line.sh output=$work/block.out
        needs=$(value_of needs "$says")
        wanted "$needs" || continue
        PYTHON_EXEC=$(python_for "$needs")
        export PYTHON_EXEC
        if [[ ! -x $PYTHON_EXEC ]]; then
            [[ ${CI:-false} != true ]] || fail "no $PYTHON_EXEC"
            echo "  left out: no $PYTHON_EXEC"
            continue
        fi
        say "$1:$line: $(head -n 1 "$block")"
        run_block "$block" "$output"
        expected=$(value_of code "$says")
        [[ ${expected:-0} == 0 || ${codes[*]} == *"$expected" ]] ||
            fail "the codes are ${codes[*]:-0}, not $expected"
        [[ ${expected:-0} != 0 || ${#codes[@]} == 0 ]] || fail "a command failed: ${codes[*]}"
        expect_seen "$says" "$output"
        wait_until 10 nothing_left || fail "left: $(marked | xargs -r ps -o pid,args -p)"
    done <"$work/blocks"
}

for page in "${pages[@]}"; do
    (play_page "$page") # no "|| exit": with it neither set -e nor the trap would count inside
done
