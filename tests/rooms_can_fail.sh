#!/usr/bin/env bash
# Whether tests/rooms.cmake sees what it is there for: an arrow that is not allowed, one that nobody takes, and units of one
# room that include each other.
set -euo pipefail
cmake=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root"/{low,high}
touch "$root/low/low.h"
echo '#include "low/low.h"' >"$root/high/high.cc"

looks_at() { "$cmake" -DROOT="$root" -DROOMS="$1" -P "$here/rooms.cmake" 2>&1; }
fail() { echo "FAILED: $*" >&2; exit 1; }
looks_at 'low=;high=low' || fail "an arrow that is allowed"
looks_at 'low=;high=' && fail "an arrow that is not allowed was not seen"
echo '#include "high/high.h"' >"$root/low/low.h"
looks_at 'low=;high=low' && fail "an arrow back was not seen"
: >"$root/low/low.h" && : >"$root/high/high.cc"
looks_at 'low=;high=low' && fail "an arrow that nobody takes was not seen"
mkdir "$root/one"
echo '#include "one/b.h"' >"$root/one/a.cc" && : >"$root/one/a.h"
: >"$root/one/b.h"
looks_at 'one=' || fail "units in a row"
echo '#include "one/a.h"' >"$root/one/b.h"
looks_at 'one=' && fail "a circle of units was not seen"
exit 0
