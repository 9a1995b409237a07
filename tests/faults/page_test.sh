#!/usr/bin/env bash
# rendezvous/FAULTS.md has a row for each cell of cells.txt, and no other rows.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cells() { sed -nE 's/^([a-z-]+) +\|.*/\1/p' "$here/cells.txt" | sort; }
rows() { sed -nE 's/^\| `([a-z-]+)` \|.*/\1/p' "$here/../../rendezvous/FAULTS.md" | sort; }
[[ -n $(cells) ]] || { echo "no cell is found in cells.txt" >&2; exit 1; }
diff --label cells.txt --label FAULTS.md <(cells) <(rows) ||
    { echo "the cells above stand in one of the two only" >&2; exit 1; }
