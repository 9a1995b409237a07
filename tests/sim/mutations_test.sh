#!/usr/bin/env bash
# Each mutation still applies, and rendezvous/PROTOCOL.md names for each rule its mutations and no others.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
page=$here/../../rendezvous/PROTOCOL.md
"$here/mutations" --check
list() { "$here/mutations" --list | sort -u; }
# The part "Mutations" of the page: "- N: `name`, `name`", with more lines of names below.
named() {
    awk '/^### Mutations/ {on = 1; next} /^##/ {on = 0} on' "$page" |
        awk '/^- [0-9]+:/ {rule = $2; sub(":", "", rule)}
             {line = $0; while (match(line, /`[a-z0-9-]+`/)) {
                 print rule, substr(line, RSTART + 1, RLENGTH - 2); line = substr(line, RSTART + RLENGTH)}}' | sort -u
}
[[ -n $(named) ]] || { echo "PROTOCOL.md names no mutation" >&2; exit 1; }
diff --label mutations.txt --label PROTOCOL.md <(list) <(named) ||
    { echo "the mutations above stand in one of the two only" >&2; exit 1; }
