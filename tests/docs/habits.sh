#!/usr/bin/env bash
# Pages, messages and comments have no more habits of prose than they had (habits.py). Then some are planted in a copy.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
habits=$root/tests/docs/habits.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
"$habits" "$root" || fail "these have more than before"

mkdir -p "$work/agent" "$work/tests/data"
printf '# Name.\nold.md 3\nagent/ 2\n' >"$work/tests/data/habits.txt"
printf 'So it goes on.\n\n```text\nit says\n```\nThe `at once` of code\nis not one.\n' >"$work/old.md"
printf '// The leader tells\n// it to nobody.\nauto text = "What is lost "\n            "lies here.";\n' \
    >"$work/agent/a.cc"
! "$habits" "$work" >"$work/out" || fail "a planted one is not found"
[[ $(cut -d';' -f1 <"$work/out") == "agent/: 4 habits of prose, 2 are allowed" ]] ||
    fail "not as expected: $(cat "$work/out")"
printf '// The leader sends nothing\n// to other nodes.\n' >"$work/agent/a.cc"
"$habits" "$work" >"$work/out" || fail "clean files are refused: $(cat "$work/out")"
"$habits" "$work" --rewrite
[[ $(cat "$work/tests/data/habits.txt") == $'# Name.\nold.md 2' ]] || fail "limits are not lowered"
