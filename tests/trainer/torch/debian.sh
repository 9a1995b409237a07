#!/usr/bin/env bash
# trainer/torch with Debian's libtorch (1.13), which keeps optimizers' states under other keys: compiled in a build of
# its own, then the tests of modules and their snapshots, and a crash and resume of mnist, whose momenta go on. Nothing
# is installed: Debian's packages are unpacked in a folder beside that of the build, where ccache finds most objects.
# Argument: the folder of the build.
objects=$(ccache --get-config cache_dir 2>/dev/null) || objects="" # before XDG_CACHE_HOME is the test's own
source "$(dirname "${BASH_SOURCE[0]}")/../../e2e/common.sh"
need_built ddprun
need_program apt-get
here=$1-debian
mkdir -p "$here/packages"
[[ -z $objects ]] ||
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=$objects CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 \
        CCACHE_SLOPPINESS=pch_defines,time_macros
do_it() { "$@" >"$work/build.out" 2>&1 || fail "$*"; }

say "its packages"
cd "$here/packages"
apt-get download libtorch-dev libtorch1.13 libgflags-dev libgoogle-glog-dev >"$work/get.out" 2>&1 ||
    skip "apt-get cannot download libtorch-dev: $(tail -n 1 "$work/get.out")"
for package in *.deb; do do_it dpkg -x "$package" "$here/root"; done

say "it compiles with it"
do_it cmake -S "$root" -B "$here" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDDPRUN_TESTS=ON \
    -DDDPRUN_TORCH_ROOT="$here/root/usr" -DDDPRUN_WERROR="${DDPRUN_WERROR:-OFF}"
expect_in "$work/build.out" 'ddprun trainer: libtorch 1\.13\.'
do_it cmake --build "$here" -j2 --target trainer_torch_module_test mnist
missing=$(ldd "$here/bin/mnist" | sed -n 's/ => not found//p')
[[ -z $missing ]] || skip "Debian's libtorch needs$missing; python3-torch brings it"

say "modules and optimizers, in and out of snapshots"
do_it "$here/tests/trainer_torch_module_test"

say "mnist: a crash at step 35, resumed from a snapshot, ends with the bits of an undisturbed run"
mnist() {
    run 200 --standalone --no-python --max-restarts=1 --nproc-per-node=2 "$here/bin/mnist" --steps 50 "$@"
    expect_code 0
}
mnist
calm=$(checksum_of "$work/run.out")
mnist --snapshot-dir "$work/s" --crash-at-step 35
expect_in "$work/run.out" 'resumed from snapshot-000000000020-g0 at step 20$'
[[ -n $calm && $(checksum_of "$work/run.out") == "$calm" ]] || fail "$(checksum_of "$work/run.out") is not $calm"
expect_nothing_left 5
