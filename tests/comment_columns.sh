#!/usr/bin/env bash
# No comment of C++ or CUDA is wider than 100 columns: folder of the sources. clang-format leaves comments alone, since
# it tears diagrams apart.
set -euo pipefail
export LC_ALL=C.UTF-8
cd "$1"
find_wide() {
    grep -rnE --include='*.cc' --include='*.h' --include='*.cu' --include='*.cuh' --exclude-dir='build*' \
        '^.{101,}$' "$@" |
        grep -E '^[^:]*:[0-9]+: *//'
}

# It finds one that is too wide, and none that is just as wide as allowed.
wide=$(mktemp -d)
trap 'rm -rf "$wide"' EXIT
printf '//%99s\n' ä >"$wide/good.h"
printf '    //%95s\n' x >"$wide/bad.h"
[[ $(find_wide "$wide" | cut -d: -f1) == "$wide/bad.h" ]] || { echo "the search does not work"; exit 1; }

if wide_ones=$(find_wide .); then
    echo "these comments are wider than 100 columns:"
    echo "$wide_ones"
    exit 1
fi
