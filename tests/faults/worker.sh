#!/usr/bin/env bash
# The worker of a story: notes when it starts, checks that no other generation trains, and becomes train.
#
#   worker.sh FOLDER OPTIONS-OF-TRAIN…
#
# Each worker holds a lock on the file of its generation for as long as it lives. So the files tell in true time, for
# all hosts together, whether two generations live at once. FOLDER/last is the last generation of the story. It trains
# faster, unless it is generation 0, in which the faults happen.
set -euo pipefail
folder=$1; shift
generation=$TORCHELASTIC_RESTART_COUNT
exec {mutex}>"$folder/mutex" {alive}>"$folder/alive.$generation"
flock "$mutex"
flock --shared "$alive"
for other in "$folder"/alive.*; do
    [[ $other != "$folder/alive.$generation" ]] || continue
    exec {probe}>"$other"
    flock --nonblock "$probe" || echo "${other##*.} beside $generation" >>"$folder/overlap"
    exec {probe}>&-
done
exec {mutex}>&-
echo "$EPOCHREALTIME" >"$folder/started.$generation.$RANK"
pace=$(<"$folder/pace")
((generation == 0 || generation < $(<"$folder/last"))) || pace=$(<"$folder/last-pace")
exec "${TRAIN:?}" --steps 150 --snapshot-every 10 --snapshot-dir "$folder/snapshots" --step-time-ms "$pace" "$@"
