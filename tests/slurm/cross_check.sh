#!/bin/bash
# Compares the golden host lists with what Slurm's own parser says: run by hand where scontrol is installed; no cluster
# is needed. What this Slurm refuses is counted, not compared: before 23.11 text behind a bracket is an error there.
set -u
cd "$(dirname "$0")/../data" || exit 1
SLURM_CONF=$(mktemp)
export SLURM_CONF
trap 'rm -f "$SLURM_CONF"' EXIT
printf 'ClusterName=none\nSlurmctldHost=localhost\nNodeName=localhost\nPartitionName=p Nodes=localhost\n' >"$SLURM_CONF"
checked=0 refused=0 wrong=0
while IFS=$'\t' read -r expression names; do
    [[ $expression == '#'* || $names == '!'* ]] && continue
    theirs=$(scontrol show hostnames "$expression" 2>/dev/null | paste -sd' ')
    if [[ -z $theirs ]]; then
        refused=$((refused + 1))
    elif [[ $theirs != "$names" ]]; then
        wrong=$((wrong + 1))
        echo "$expression: ours '$names', Slurm's '$theirs'"
    fi
    checked=$((checked + 1))
done <hostlists.txt
echo "$checked expressions: $wrong differ, $refused refused by $(scontrol --version)"
exit $((wrong > 0))
