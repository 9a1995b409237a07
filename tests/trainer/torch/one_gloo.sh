#!/usr/bin/env bash
# No program may need Debian's Gloo and PyTorch's libtorch, which has a Gloo of its own inside: the names are the same,
# the contents are not, and the program crashes. Debian's libtorch needs Debian's Gloo itself. Arguments: programs.
set -euo pipefail
(($#)) || { echo "which programs?"; exit 2; }
needs() { readelf -d "$1" | grep -q "NEEDED.*\[$2"; } # program, library
both() { needs "$1" 'libgloo\.so' && needs "$1" 'libtorch_cpu\.so\]'; }

# The test itself can fail: a program of both kinds.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in libgloo.so.0 libtorch_cpu.so; do
    echo | gcc -shared -x c - -o "$work/$name" -Wl,-soname,"$name"
done
echo 'int main() { return 0; }' | gcc -x c -c - -o "$work/main.o"
gcc -Wl,--no-as-needed "$work/main.o" "$work/libgloo.so.0" "$work/libtorch_cpu.so" -o "$work/wrong"
both "$work/wrong" || { echo "a program with two Gloos was not found"; exit 1; }

for program in "$@"; do
    needs "$program" 'libtorch_cpu\.so' || { echo "$program does not need libtorch"; exit 1; }
    ! both "$program" || { echo "$program needs two Gloos: link ddprun_trainer_torch, not ddprun_trainer"; exit 1; }
done
echo "$# programs with one Gloo"
