#!/usr/bin/env bash
# torchrun and ddprun side by side (tests/differential): ours against the recorded answers, and where the current torchrun is
# at hand, ten of these anew, and its options against ours.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program python3

side_by_side() { python3 "$root/tests/differential/differential.py" "$@" >"$work/side.out" 2>&1 || fail "see above"; }
say "every case under ddprun, by both of its names"
side_by_side check "$ddprun"
say "every option of torchrun is ours, and in a case"
side_by_side options "$ddprun"
torchrun=${DDPRUN_TORCH_VENV:-$root/build/torch-venv}/bin/torchrun
[[ -x $torchrun ]] || skip "the recorded answers were met; no $torchrun to ask anew (tests/run.sh --long makes it)"
say "what the current torchrun says today"
side_by_side options "$ddprun" "$torchrun"
side_by_side again "$torchrun"
