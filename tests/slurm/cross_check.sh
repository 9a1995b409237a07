#!/bin/bash
# Compares the golden host lists, and so many made-up ones (LISTS, default 2000; SEED), with what Slurm's own parser says: run
# by hand where scontrol is installed; no cluster is needed. The made-up ones need the target hostlist_bench. What this Slurm refuses is counted, not compared: before 23.11 text behind a bracket is an error there.
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

# Well-formed lists as Slurm writes them and as people do: up to three brackets, padding, several prefixes, doubles.
made_up() {
    awk -v lists="$1" -v seed="$2" '
        function some(n) { return int(rand() * n) }
        function padded(n, width) { return sprintf("%0" width "d", n) }
        function ranges(    text, i, low, width) {
            for (i = 1 + some(3); i > 0; --i) {
                low = some(some(2) ? 12 : 1200); width = some(2) ? 1 : 1 + some(5)
                text = text (text == "" ? "" : ",") padded(low, width) (some(3) ? "-" (some(2) ? low + some(9) : padded(low + some(9), 1 + some(6))) : "")
            }
            return "[" text "]"
        }
        function name(    text, i) {
            text = substr("n gpu rack node-a ip-10-0-0- 10.0.0. c ", 1 + 0)
            split(text, words, " "); text = words[1 + some(7)]
            for (i = some(4); i > 0; --i) text = text ranges() (i > 1 ? substr("rnc", 1 + some(3), 1) : "")
            return text ~ /]$/ || some(2) ? text : text some(100)
        }
        BEGIN {
            srand(seed)
            while (lists-- > 0) {
                text = name()
                for (i = some(4); i > 0; --i) text = text "," name()
                print text
            }
        }'
}
tool=../../build/tests/hostlist_bench
if [[ -x $tool ]]; then
    while IFS=$'\t' read -r expression names; do
        theirs=$(scontrol show hostnames "$expression" 2>/dev/null | paste -sd' ')
        if [[ $theirs != "$names" ]]; then
            wrong=$((wrong + 1))
            echo "$expression: ours '$names', Slurm's '$theirs'"
        fi
        checked=$((checked + 1))
    done < <(paste <(made_up "${LISTS:-2000}" "${SEED:-1}") <(made_up "${LISTS:-2000}" "${SEED:-1}" | "$tool" expand))
fi
echo "$checked expressions: $wrong differ, $refused refused by $(scontrol --version)"
exit $((wrong > 0))
