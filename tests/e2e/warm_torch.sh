#!/usr/bin/env bash
# Warm starts with a real PyTorch (debian or current): what workers do with it after a fork is what they do cold.
source "$(dirname "${BASH_SOURCE[0]}")/pytorch_common.sh"
source "$e2e/warm_common.sh"
need_built ddprun

say "each kind of script with PyTorch prints the same and ends in the same way"
kinds=$(sed -n 's/^    "\([a-z_]*\)": .*/\1/p' "$e2e/warm/torch_kinds.py")
# Each kind takes six imports of torch.
[[ -n ${DDPRUN_LONG:-} ]] || kinds="train seeds"
[[ -n ${DDPRUN_LONG:-} || $1 == debian ]] || kinds+=" load_fork spawn cuda fails"
for kind in $kinds; do
    # The first worker that fails ends the others, which may then not have said why they would fail.
    [[ $kind == @(fails|killed) ]] && workers=1 || workers=2
    same_warm_and_cold --nproc-per-node=$workers "$e2e/warm/torch_kinds.py" "$kind"
done
