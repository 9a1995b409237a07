#!/usr/bin/env bash
# torchrun and ddprun side by side (tests/differential). ddprun must give the recorded answers of torchrun. If the
# current torchrun is installed, ten of the cases are recorded again, and its options are compared with those of ddprun.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun
need_program python3

side_by_side() { python3 "$root/tests/differential/differential.py" "$@" >"$work/side.out" 2>&1 || fail "see above"; }
say "every case under ddprun, called by both names"
side_by_side check "$ddprun"
say "every option of torchrun is an option of ddprun, and in a case"
side_by_side options "$ddprun"
# Only tests/run.sh --long downloads the current torchrun.
torchrun=${DDPRUN_TORCH_VENV:-$root/build/torch-venv}/bin/torchrun
[[ -x $torchrun ]] || skip "the recorded answers were met; no $torchrun to ask anew (tests/run.sh --long makes it)"
say "the current torchrun answers as recorded"
side_by_side options "$ddprun" "$torchrun"
side_by_side again "$torchrun"
