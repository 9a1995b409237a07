#!/bin/bash
# Compares our host list parser with Slurm's own (`scontrol show hostnames`). It checks the golden file, and then LISTS
# made-up lists (default 2000, from the random seed SEED). Run it by hand where scontrol is installed; no cluster is
# needed. The made-up lists need the target hostlist_bench, and are skipped without it.
#
# What this Slurm refuses of the golden file is counted and not compared: before 23.11 it takes text behind a bracket
# for an error.
set -u
cd "$(dirname "$0")/../data" || exit 1
SLURM_CONF=$(mktemp)
export SLURM_CONF
trap 'rm -f "$SLURM_CONF"' EXIT
# scontrol reads a configuration before it does anything, so it gets the smallest one that is valid.
printf 'ClusterName=none\nSlurmctldHost=localhost\nNodeName=localhost\nPartitionName=p Nodes=localhost\n' >"$SLURM_CONF"
checked=0 refused=0 wrong=0
while IFS=$'\t' read -r expression names; do
    # Lines with `!` hold the sentence of our error. scontrol has other sentences.
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

# Prints $1 well-formed lists from seed $2, as Slurm and people write them: up to three brackets in a name, zero
# padding, several prefixes, duplicates, and ranges whose ends have different widths. The same seed gives the same
# lists, so the two calls below agree.
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
