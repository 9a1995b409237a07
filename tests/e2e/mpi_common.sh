# Programs whose ranks each say a line, on one node and on two. Sourced by the tests of --pmi.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Every rank of all has said this: pattern, how often.
expect_times() {
    local count
    count=$(cat "$work"/*.out | grep -cE "$1" || true)
    ((count == $2)) || fail "\"$1\" stands there $count times, not $2"
}
# Starts two nodes, n0 and n1, with --pmi: options of the second one, --, options of both and the program.
two_nodes() {
    local second=() at
    while [[ $1 != -- ]]; do second+=("$1"); shift; done
    shift
    at=$(free_port)
    start n0 --nnodes=2 --node-rank=0 --rdzv-id="$mark" --rdzv-endpoint="127.0.0.1:$at" --pmi "$@"
    start n1 --nnodes=2 --node-rank=1 --rdzv-id="$mark" --rdzv-endpoint="127.0.0.1:$at" "${second[@]}" "$@"
}
# Both end with success: seconds.
join_both() {
    local node
    for node in n0 n1; do
        join $node "$1"
        expect_code 0
    done
}
