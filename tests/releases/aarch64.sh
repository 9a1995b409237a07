#!/usr/bin/env bash
# The packages for AArch64: built on this machine, looked at, and run by an emulator, which has neither seccomp nor all
# of the system calls: what lacks costs a sentence at most, not the job.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/common.sh"
need_root
[[ $(uname -m) != aarch64 ]] || skip "this machine needs no cross compiler"
for tool in apt-get dpkg-deb ninja cmake; do need_program "$tool"; done

say "build, about 50 MB to download the first time"
"$root/packaging/aarch64.sh" "$work/packages" >"$work/build.out" 2>"$work/build.err" || fail "it cannot be built"
archive=$(echo "$work"/packages/*.tar.gz) deb=$(echo "$work"/packages/*.deb) wheel=$(echo "$work"/packages/*.whl)
[[ $archive == *-linux-aarch64.tar.gz && $deb == *_arm64.deb && $wheel == *_aarch64.whl ]] ||
    fail "there are $(ls "$work/packages")"
[[ $(dpkg-deb --field "$deb" Architecture) == arm64 ]] || fail "the architecture of the Debian package"
tar -C "$work" --strip-components=1 -xzf "$archive"
for program in ddprun ddpctl ddprun-rendezvous; do
    readelf -hl "$work/bin/$program" >"$work/elf.out"
    expect_in "$work/elf.out" 'Machine: *AArch64'
    ! grep -q INTERP "$work/elf.out" || fail "$program is not static"
    limit=$(awk -v name="size_${program//-/_}" '$1 == name {print $2}' "$root/tests/data/limits.txt")
    size=$(stat -c %s "$work/bin/$program")
    echo "  $program: $size bytes, at most $limit"
    ((size <= limit)) || fail "$program has $size bytes, more than the $limit of tests/data/limits.txt"
    [[ -s $work/share/man/man1/$program.1.gz ]] || fail "no manual page of $program"
done

# Runs a program in the emulator: program, words. Sets code.
emulated() {
    code=0
    DDPRUN_TEST_MARK=$mark timeout --kill-after=5 120 qemu-aarch64-static "$work/bin/$1" "${@:2}" </dev/null \
        >"$work/run.out" 2>"$work/run.err" || code=$?
}
say "what asks nothing of the system"
for program in ddprun ddpctl ddprun-rendezvous; do
    emulated "$program" --version
    expect_code 0
    expect_in "$work/run.out" "^$program [0-9.]+, commit .*, build Release GNU-[0-9.]+ aarch64$"
    emulated "$program" --help
    expect_code 0
    expect_in "$work/run.out" '^ +--'
done
emulated ddprun --dry-run --nnodes=4 --nproc-per-node=8 train.py
expect_code 0
expect_in "$work/run.out" 'would start 32 workers on 4 nodes'

say "workers: they run, fail, and are started again"
emulated ddprun --standalone --nproc-per-node=2 sh -c 'echo "rank $RANK of $WORLD_SIZE"'
expect_code 0
expect_in "$work/run.out" 'rank 1 of 2'
emulated ddprun --standalone --nproc-per-node=1 sh -c 'exit 7'
expect_code 7
emulated ddprun --standalone --nproc-per-node=2 --max-restarts=1 \
    sh -c 'test "$TORCHELASTIC_RESTART_COUNT$RANK" != 00 && echo "generation $TORCHELASTIC_RESTART_COUNT" || kill -9 $$'
expect_code 0
expect_in "$work/run.err" 'rank 0 .* was killed by signal 9'
expect_in "$work/run.out" 'generation 1'
expect_nothing_left
