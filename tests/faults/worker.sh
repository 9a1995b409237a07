#!/usr/bin/env bash
# The worker of a story: notes when it starts, sees to it that no other generation trains, and becomes train.
#
#   worker.sh FOLDER OPTIONS-OF-TRAIN…
#
# Each worker holds a lock on its generation's file for as long as it lives, so the files tell on true time, and over all
# hosts, whether two generations live at once. FOLDER/last is the last generation of the story: it hurries,
# unless it is the first too, which has the faults.
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
