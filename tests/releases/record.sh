#!/usr/bin/env bash
# Records what a release leaves on disk: the ledger of a job that was cut off after a restart, and the snapshots that
# its training wrote. Run it once for each release, as root: tests/releases/record.sh BUILD. recorded.sh gives it to
# later programs.
#
# It makes tests/data/releases/VERSION with
#   ledger/       the folder of ledgers; the job is lab.88.0
#   snapshots/    of `linear`, cut off in its second epoch
#   checksum.txt  of the weights when nothing is cut off
set -euo pipefail
releases=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$releases/../.." && pwd)
bin=${1:-$root/build}/bin
# Nothing of this machine is recorded: the host has another name, and no network.
if [[ $(hostname) != node1 ]]; then
    exec unshare --uts --net sh -c 'hostname node1 && ip link set lo up && exec "$0" "$@"' "${BASH_SOURCE[0]}" "$@"
fi
version=$("$bin/ddprun" --version | sed 's/^ddprun \([^,]*\).*/\1/')
to=$root/tests/data/releases/$version
[[ ! -e $to ]] || { echo "$to exists; what a release wrote does not change" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$bin/linear" "$releases/worker" .

"$bin/ddprun" --standalone --nproc-per-node=2 ./linear 3 whole >out
# The first attempt crashes and is restarted; the second one is cut off together with ddprun, as by a power failure.
LINEAR_CRASH_AT=30 "$releases/job.sh" "$bin/ddprun" 0 >cut.out 2>cut.err &
job=$!
for ((i = 0; i < 600; i++)); do
    [[ ! -e ledger/lab.88.0/entry-000001.json ]] || break
    sleep 0.1
done
kill -KILL "$job"
wait "$job" 2>/dev/null || true
compgen -G "snapshots/snapshot-*.json" >/dev/null || { echo "no snapshot was complete; try again" >&2; exit 1; }
mkdir -p "$to"
cp -r ledger snapshots "$to/"
grep -o 'checksum=.*' out >"$to/checksum.txt"
find "$to" -type f | sort
