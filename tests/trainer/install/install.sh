#!/usr/bin/env bash
# A project outside uses the trainer, each way that trainer/README.md shows: as a package of CMake (static and shared),
# by pkg-config, and as a part of its own build, with and without CUDA. Another program, net.cc, uses it with libtorch.
# Arguments: the build folder, whether it has CUDA (ON, OFF), and the folder of its libtorch, if it has one.
objects=$(ccache --get-config cache_dir 2>/dev/null) || objects="" # before XDG_CACHE_HOME is the test's own
source "$(dirname "${BASH_SOURCE[0]}")/../../e2e/common.sh"
build=$1 cuda=$2 torch=${3-}
need_built ddprun
need_program pkg-config
# They stay in the build folder: two of them compile the trainer, and in a second run only what has changed.
projects=$build/trainer_install
rm -rf "$projects/package"
readme=$root/trainer/README.md
[[ -z $objects ]] || export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=$objects CCACHE_NOHASHDIR=1
export CMAKE_GENERATOR=Ninja CMAKE_BUILD_PARALLEL_LEVEL=2

# Prints the n-th block of CMake on the page.
block() { awk -v n="$1" '/^```cmake/ {count++; on = count == n; next} /^```/ {on = 0} on' "$readme"; }
# Makes the folder of a project: name, blocks of the page… Its program is an example, as a user has it who copied it.
project() {
    local folder=$projects/$1 number; shift
    mkdir -p "$folder"
    cp "$root"/examples/*.h "$folder"
    sed 's|#include "examples/\(.*\)"|#include "\1"|; s|#include "\(.*/.*\)"|#include <ddprun/\1>|' \
        "$root/examples/linear.cc" >"$folder/main.cc"
    for number in "$@"; do block "$number"; done |
        sed "s|PATH_OF_DDPRUN|$root|; s|FOLDER_OF_TORCH|$torch|" >"$folder/CMakeLists.txt"
}
# Another program of a project, if there is a libtorch: name. And options for it.
add_net() {
    [[ -n $torch ]] || return 0
    cp "$root/tests/trainer/install/net.cc" "$projects/$1"
    printf '%s\n' 'add_executable(net net.cc)' 'target_link_libraries(net PRIVATE ddprun::trainer_torch)' \
        >>"$projects/$1/CMakeLists.txt"
}
asks_for_torch=(${torch:+"-DDDPRUN_TORCH_ROOT=$torch"})
# Runs a command of a build: command… Its output is shown when it fails.
do_it() { "$@" >"$work/build.out" 2>&1 || fail "$*"; }
# Configures and builds a project: name, options of cmake…
make_project() {
    do_it cmake -S "$projects/$1" -B "$projects/$1/build" "${@:2}"
    do_it cmake --build "$projects/$1/build"
}
# The program trains under ddprun, to the same bits as all others of its kind: path.
declare -A sum
trains() {
    run 60 --standalone --nproc-per-node=2 "$1" 2
    expect_code 0
    local now kind=${1##*/}
    [[ $kind == net ]] || kind=linear
    now=$(checksum_of "$work/run.out")
    [[ -n $now && $now == "${sum[$kind]:=$now}" ]] || fail "it computed '$now', another one '${sum[$kind]}'"
}
# Where there is libtorch, the other program does, too, and has one Gloo: folder of the build.
net_trains() {
    [[ -n $torch ]] || return 0
    trains "$1/net"
    do_it bash "$root/tests/trainer/torch/one_gloo.sh" "$1/net"
}
# Configuring ends with an error, of one sentence: name, the sentence, options of cmake…
refuses() {
    ! cmake -S "$projects/$1" -B "$work/refused" "${@:3}" >"$work/build.out" 2>&1 || fail "it is taken"
    tr -s '\n ' ' ' <"$work/build.out" >"$work/sentence.out" # CMake breaks lines
    expect_in "$work/sentence.out" "$2"
    rm -rf "$work/refused"
}
shared_of() { readelf -d "$1" | grep NEEDED | grep -o '\[.*\]' || true; } # libraries that a program loads
has_cuda() { grep -q ' [Tt] cudaStreamCreate' <(nm "$1"); }

# The commands of the page as they stand, where ~ is a folder of the test and `build` is the build's.
mapfile -t commands < <(sed -n 's/^    \(cmake .*\)/\1/p' "$readme")
[[ ${#commands[@]} == 3 ]] || fail "the page has ${#commands[@]} commands of cmake"
as_shown() { do_it env -C "$1" HOME="$work/home" bash -c "$2"; } # folder, command
say "the trainer is configured and installed by the commands of its page"
as_shown "$root" "${commands[0]} -B $work/configured"
if [[ $build -ef $root/build ]]; then as_shown "$root" "${commands[1]} -- -n"; fi
ln -s "$build" "$work/build"
as_shown "$work" "${commands[2]}"

say "what has not been built is named, with the command"
! cmake --install "$work/configured" --prefix "$work/none" >"$work/build.out" 2>&1 || fail "it is installed"
tr -s '\n ' ' ' <"$work/build.out" >"$work/sentence.out"
expect_in "$work/sentence.out" 'has not been built\. Build all with: cmake --build .*--target ddprun_trainer_static'

say "without CMake, by the command of its page, and the program starts by itself"
project package 1
compile=$(sed -n 's/.*`\(g++ [^`]*\)`.*/\1/p' "$readme") variable=$(sed -n 's/.*`\(PKG_CONFIG_PATH=[^`]*\)`.*/\1/p' "$readme")
as_shown "$projects/package" "export $variable && $compile -o $work/mine"
trains "$work/mine"
expect_in <(shared_of "$work/mine") 'libddprun_trainer'

say "it works where it is moved to"
mv "$work/home/.local" "$work/prefix"
[[ ! -e $work/prefix/bin ]] || fail "more than the trainer is installed"
! grep -rlI "$root\|$work/home" "$work/prefix" || fail "a path of the build is in it"

say "each header of it compiles outside, without CUDA, NCCL and Gloo"
(cd "$work/prefix/include" && find ddprun -name '*.h' | sort -r | sed 's/.*/#include <&>/') >"$work/all.cc"
(($(wc -l <"$work/all.cc") >= 30)) || fail "too few headers"
expect_in "$work/all.cc" 'trainer/snapshot/snapshot_writer\.h' # its older name; the room is snapshot/save
do_it g++ -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$work/prefix/include" "$work/all.cc"
expect_not_in <(g++ -std=c++20 -M -I "$work/prefix/include" "$work/all.cc") '/cuda[^/ ]*\.h|/nccl\.h|include/gloo/'

say "a package of CMake, static"
make_project package -DCMAKE_PREFIX_PATH="$work/prefix"
trains "$projects/package/build/mine"
expect_not_in <(shared_of "$projects/package/build/mine") 'ddprun'
[[ $cuda == OFF ]] || has_cuda "$projects/package/build/mine" || fail "there is no CUDA in it"

say "a package of CMake, shared"
make_project package -DCMAKE_PREFIX_PATH="$work/prefix" -DBUILD_SHARED_LIBS=ON
trains "$projects/package/build/mine"
expect_in <(shared_of "$projects/package/build/mine") 'libddprun_trainer\.so\.[0-9]+\.[0-9]+\]'

if [[ -e $bin/smallest_mpi ]]; then
    say "a package of CMake, over MPI"
    project over_mpi 4
    sed 's|#include "\(.*/.*\)"|#include <ddprun/\1>|' "$root/examples/mpi/smallest_mpi.cc" \
        >"$projects/over_mpi/main.cc"
    make_project over_mpi -DCMAKE_PREFIX_PATH="$work/prefix"
    run 60 --standalone --nproc-per-node=2 --pmi "$projects/over_mpi/build/mine"
    expect_code 0
    expect_in "$work/run.out" 'rank 1 of 2: over MPI the ranks add up to 1'
fi

say "a component that it does not have is named"
sed -i 's/REQUIRED/REQUIRED COMPONENTS cuda/' "$projects/package/CMakeLists.txt"
refuses package 'no component cuda: it has static, shared and' -DCMAKE_PREFIX_PATH="$work/prefix"

if [[ -n $torch ]]; then
    say "a package of CMake, with libtorch and without Debian's Gloo"
    project with_torch 5
    cp "$root/tests/trainer/install/net.cc" "$projects/with_torch/main.cc"
    sed -i 's/mine/net/' "$projects/with_torch/CMakeLists.txt"
    make_project with_torch -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_DISABLE_FIND_PACKAGE_Gloo=ON
    net_trains "$projects/with_torch/build"

    say "another version of libtorch is named, and a folder without one"
    fake=$work/fake headers=$work/fake/include/torch/csrc/api/include/torch
    mkdir -p "$headers" "$fake/lib"
    touch "$headers/torch.h" "$fake/lib/libtorch_cpu.so"
    printf '#define TORCH_VERSION_%s 1\n' MAJOR MINOR PATCH >"$headers/version.h"
    echo _ZN3c10_of__cxx11 >"$fake/lib/libc10.so"
    refuses with_torch "built with libtorch [0-9.]+, but $fake has 1\.1\.1: name that one" \
        -DCMAKE_PREFIX_PATH="$work/prefix" -DDDPRUN_TORCH_ROOT="$fake"
    rm "$fake/lib/libc10.so"
    refuses with_torch "built with libtorch [0-9.]+, and here is no libtorch: name that one" \
        -DCMAKE_PREFIX_PATH="$work/prefix" -DDDPRUN_TORCH_ROOT="$fake"
    refuses with_torch "DDPRUN_TORCH_ROOT=$work: no include/torch" \
        -DCMAKE_PREFIX_PATH="$work/prefix" -DDDPRUN_TORCH_ROOT="$work"

    say "a program with both kinds is refused"
    sed -i 's/COMPONENTS torch/COMPONENTS torch static/; s/trainer_torch/trainer ddprun::trainer_torch/' \
        "$projects/with_torch/CMakeLists.txt"
    refuses with_torch 'DDPRUN_TRAINER_OR_TRAINER_TORCH_NOT_BOTH property of "?ddprun::trainer_torch"? does not agree' \
        -DCMAKE_PREFIX_PATH="$work/prefix"
fi

say "pkg-config, shared and static"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name ddprun-trainer.pc)")
for name in ddprun-trainer ddprun-trainer-static; do
    # shellcheck disable=SC2046
    do_it g++ -std=c++20 -o "$work/$name" "$projects/package/main.cc" $(pkg-config --cflags --libs "$name")
done
trains "$work/ddprun-trainer"
expect_in <(shared_of "$work/ddprun-trainer") 'libddprun_trainer'
trains "$work/ddprun-trainer-static"
expect_not_in <(shared_of "$work/ddprun-trainer-static") 'ddprun'

# Whether a build knows nothing of the launcher's libraries: folder.
needs_little() {
    expect_not_in "$1/CMakeCache.txt" '(Protobuf|GRPC|grpc|OPENSSL|DDPRUN_SSL|GTest)_[A-Za-z_]*:[A-Z]+=.*/'
    [[ -z $(find "$1" -name '*.pb.h' -o -name ddprun -type f) ]] || fail "more than the trainer is built"
}
without=(-DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON
    -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON)

say "a folder of the project's own build, without CUDA, Protobuf and gRPC"
project folder 2
add_net folder
make_project folder -DDDPRUN_CUDA=OFF "${asks_for_torch[@]}" "${without[@]}"
trains "$projects/folder/build/mine"
net_trains "$projects/folder/build"
needs_little "$projects/folder/build"
! has_cuda "$projects/folder/build/mine" || fail "there is CUDA in it"

say "FetchContent, shared, with CUDA where it is"
project fetched 3
add_net fetched
make_project fetched -DDDPRUN_CUDA="$cuda" -DBUILD_SHARED_LIBS=ON "${asks_for_torch[@]}" "${without[@]}"
trains "$projects/fetched/build/mine"
net_trains "$projects/fetched/build"
expect_in <(shared_of "$projects/fetched/build/mine") 'libddprun_trainer'
needs_little "$projects/fetched/build"
