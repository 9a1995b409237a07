#!/usr/bin/env bash
# PyTorch's own client calls every method of its store, against PyTorch's own server (both back ends, if there are two)
# and against ddprun's: the answers must be the same. Then ddprun's client calls PyTorch's servers. Argument: debian or
# current.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
tests=$(dirname "$bin")/tests
[[ -x $tests/store_serve && -x $tests/store_calls ]] || fail "$tests/store_serve, store_calls are not built"

# Debian's torch has the older back end only.
back_ends=(uv poll)
[[ ${1:-debian} == debian ]] && back_ends=(poll)
# Servers of each kind: what is put behind their names.
serve_all() {
    local back_end
    serve "ours$1" "$tests/store_serve"
    for back_end in "${back_ends[@]}"; do serve "$back_end$1" "$python" "$e2e/pytorch_store.py" serve "$back_end"; done
}
serve_all ""

# Calls all methods with PyTorch's client; answers in $work/NAME.out: name of the server.
ask() {
    local options=()
    [[ $1 != poll || ${back_ends[0]} == poll ]] || options=(--no-queues)
    DDPRUN_TEST_MARK=$mark timeout 200 "$python" "$e2e/pytorch_store.py" 127.0.0.1 "${server_port[$1]}" "${options[@]}" \
        >"$work/$1.out" 2>"$work/client_$1.err" || fail "the client ended with code $? at the server $1"
    expect_in "$work/$1.out" '^all called'
}

say "PyTorch's client gets the same answers from its own server and from ours"
clients=()
for name in "${back_ends[@]}" ours; do
    ask "$name" &
    clients+=($!)
done
for client in "${clients[@]}"; do wait "$client" || fail "a client failed"; done
reference=${back_ends[0]}
diff "$work/$reference.out" "$work/ours.out" >"$work/difference.err" || fail "ours answers otherwise than $reference"
echo "$(wc -l <"$work/ours.out") answers compared"
if [[ $reference == uv ]]; then
    # The older back end has no queues: it closes the connection.
    diff "$work/poll.out" <(grep -v queue "$work/ours.out") >"$work/difference.err" ||
        fail "ours answers otherwise than PyTorch's older back end"
fi

say "a value of 300 MiB in ddprun's store"
timeout 200 "$python" "$e2e/pytorch_store.py" 127.0.0.1 "${server_port[ours]}" --large 300 || fail "it did not come back"

say "ddprun's client gets the same from PyTorch's servers and from ddprun's"
# What torch 1.13 does not have.
without=(); [[ ${1:-debian} == debian ]] && without=(append multi cancel queue list_keys barrier)
serve_all _empty # the others have keys of the stories before
for name in "${back_ends[@]}" ours; do
    missing=("${without[@]}")
    [[ $name == poll ]] && missing+=(queue)
    [[ $name == ours ]] && missing=()
    timeout 60 "$tests/store_calls" 127.0.0.1 "${server_port[${name}_empty]}" "${missing[@]}" >"$work/calls_$name.out" 2>&1 ||
        fail "our client at the server $name"
done
