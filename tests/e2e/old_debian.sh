#!/usr/bin/env bash
# The static binaries need no interpreter, have less than 20 MB, and start in the tree of an older Debian.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_built ddprun ddprun-rendezvous
need_program readelf
need_program strip

for program in ddprun ddprun-rendezvous; do
    say "$program is static and small"
    readelf -l "$bin/$program" >"$work/headers"
    expect_not_in "$work/headers" 'INTERP'
    strip -o "$work/$program" "$bin/$program"
    size=$(stat -c %s "$work/$program")
    ((size < 24000000)) || fail "$program has $size bytes"
done

need_root
need_program debootstrap
need_program unshare
# The tree stays in build/, so only the first run downloads it.
suite=bullseye tree=$root/build/old-debian
if [[ ! -e $tree/complete ]]; then
    say "a tree of $suite, about 50 MB to download"
    rm -rf "$tree"
    debootstrap --variant=minbase "$suite" "$tree" >"$work/debootstrap.out" 2>&1 ||
        { tail -n 3 "$work/debootstrap.out"; skip "debootstrap cannot make a tree of $suite"; }
    touch "$tree/complete"
fi

say "ddprun runs two workers in that tree"
cp "$work/ddprun" "$work/ddprun-rendezvous" "$tree/usr/local/bin/"
# Runs a command in the tree: command… Sets code. /proc is mounted in a namespace of its own, so nothing stays mounted.
inside() {
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 30 unshare --mount sh -c \
        'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$tree" "$@" </dev/null >"$work/run.out" 2>"$work/run.err" || code=$?
}
inside /usr/local/bin/ddprun --standalone --nproc-per-node=2 /bin/true
expect_code 0
inside /usr/local/bin/ddprun --standalone --nproc-per-node=2 sh -c 'exit 7'
expect_code 7
inside /usr/local/bin/ddprun-rendezvous --help
expect_code 0
expect_nothing_left
