#!/usr/bin/env bash
# Runs every block of examples/README.md as it stands, in its order, and looks at what came out: a newcomer copies these
# commands, so they must work. Runs in a network namespace where that is possible. Exit code 77: matplotlib is missing,
# everything else ran.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$1 # the build folder; the README says build/

# In a namespace of its own, the ports of the examples cannot collide with another test's.
if [[ $EUID == 0 && -z ${README_ISOLATED:-} ]] && unshare --net true 2>/dev/null; then
    export README_ISOLATED=1
    exec unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$0" "$@"
fi
# A test that itself runs inside a job must not pass its place on to the examples.
for name in $(compgen -e); do
    case $name in SLURM_* | PET_* | TORCHELASTIC_* | RANK | WORLD_SIZE | LOCAL_RANK | MASTER_*) unset "$name" ;; esac
done
export PATH=/usr/bin:$PATH # Debian's Python, for which the packages are
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OUT=$work/out
mkdir "$OUT"

# Joins all blocks to one script, since later blocks use what earlier ones made. Before each block its number is
# printed, so the log shows which one failed.
awk '/^```bash$/ { inside = 1; print "echo \"--- block " ++n "\""; next } /^```$/ { inside = 0 } inside' \
    examples/README.md | sed "s,build/bin/,$build/bin/,g" >"$work/blocks.sh"
# A changed mark in the README would silently run nothing.
grep -c '^echo "--- block' "$work/blocks.sh" | grep -qx 8 || { echo "examples/README.md: expected 8 blocks"; exit 1; }

skip=0
if ! python3 -c 'import matplotlib' 2>/dev/null; then
    sed -i '/plot.py/d' "$work/blocks.sh"
    skip=77
fi
if ! timeout 150 bash -euo pipefail "$work/blocks.sh" >"$work/log" 2>&1; then
    tail -n 40 "$work/log"
    exit 1
fi
expect() { grep -qE -- "$1" "$work/log" || { echo "not in the output: $1"; tail -n 60 "$work/log"; exit 1; }; }
expect 'rank 0 of 2: the ranks add up to 1'
# `linear` saves every eight steps and crashes before step 30. Saving runs in the background, so the crash may come
# before the newest snapshot is complete.
expect 'resumed from snapshot-[0-9]+-g0 at step (8|16|24)$'
# 96 steps are three epochs of 2,048 samples with two workers and a batch of 32 each.
expect 'resumed from snapshot-[0-9]+-g1 at step 96'
expect 'epoch=3 step=[0-9]+ loss=0\.0'
# The GPT crashes before step 45 and saves every 20 steps; before a crash on purpose it waits for its snapshot.
expect 'resumed from snapshot-[0-9]+-g0 at step 40$'
expect '^(\[.*\]:?)? ?validation=[0-9.]+ checksum=[0-9a-f]+$'
((skip)) || expect '^2 ranks: [0-9]+ samples/s, efficiency [0-9.]+'
((skip)) || [[ -s $OUT/scaling.png ]] || { echo "no plot"; exit 1; }
exit "$skip"
