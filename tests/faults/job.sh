# shellcheck shell=bash disable=SC2034,SC2154
# The job of a story: members on the hosts n1 (which leads), n2, …, spares on the hosts after them, one worker on
# each; snapshots and ledger are in folders that all hosts share. Sourced by faults.sh after hosts.sh.

declare -A lost # hosts whose ddprun does not live to the end of the job
# The exit codes of these hosts are not checked: hosts…
excuse() { for one in "$@"; do lost[$one]=yes; done; }
# Prints names of hosts: first number, last number.
names() {
    local i
    for ((i = $1; i <= $2; i++)); do echo "n$i"; done
}

# Starts a ddprun: host.
start_node() {
    : >"$work/$1.err"
    unset "lost[$1]"
    enter "$1"
    DDPRUN_TEST_MARK=$mark TMPDIR=$work/tmp.$1 TRAIN=$train "${entered[@]}" "$ddprun" --nnodes="$nodes" \
        --rdzv-endpoint="$(address n1):29500" \
        --rdzv-id="$mark" --lease="$lease" --join-timeout="$patience" --last-call=0 --ledger="$ledger_option" -v \
        bash "$root/tests/faults/worker.sh" "$folder" >>"$work/$1.out" 2>"$work/$1.err" </dev/null &
    pid[$1]=$!
}

# Makes the folder of the ledger: a plain one, or a file system of its own that can be full or stand still.
prepare_ledger() {
    ledger=$work/ledger
    mkdir "$ledger"
    ledger_option=directory:$ledger
    case $ledger_kind in
        small) mount -t tmpfs -o size=64k none "$ledger" ;;
        disk)
            truncate -s 8M "$work/disk"
            mkfs.ext4 -q "$work/disk"
            mount -o loop "$work/disk" "$ledger"
            rmdir "$ledger/lost+found"
            ;;
        memory) ledger_option=memory ;;
    esac
}

# Finds the checksum of an undisturbed run, once for each number of workers: number.
declare -A calm
need_calm() {
    [[ -z ${calm[$1]:-} ]] || return 0
    run 60 --standalone --nproc-per-node="$1" "$train" --steps 150 --snapshot-every 10 --snapshot-dir "$work/calm.$1"
    expect_code 0
    calm[$1]=$(checksum_of "$work/run.out" "$work/run.err")
    [[ -n ${calm[$1]} ]] || fail "no checksum"
}

# Whether all workers of a generation have begun: generation.
begun() { (($(compgen -G "$folder/started.$1.*" | wc -l) == nodes)); }
has_snapshot() { compgen -G "$folder/snapshots/snapshot-*.json" >/dev/null; }
is_spare() { has "$work/$1.err" 'it is a spare'; }
no_worker() { [[ -z $(processes "$1" worker) ]]; }

# Boots the hosts, and waits until the members train and the spares wait.
start_job() {
    local name i=0
    folder=$work/story
    mkdir -p "$folder"
    echo "$pace" >"$folder/pace"
    echo "$last" >"$folder/last"
    echo "$last_pace" >"$folder/last-pace"
    prepare_ledger
    for name in $(names 1 $((nodes + spares))); do
        # Thirty years lie between a host's clock and the next one's.
        boot_host "$name" $((i * clocks_apart))
        i=$((i + 1))
    done
    for name in $(names 1 "$nodes"); do start_node "$name"; done
    wait_until 30 begun 0 || fail "the job does not start"
    for name in $(names $((nodes + 1)) $((nodes + spares))); do
        start_node "$name"
        wait_until 20 is_spare "$name" || fail "$name is no spare"
    done
    wait_until $((30 + pace / 50)) has_snapshot || fail "no snapshot" # of step 10
}

# Prints what still runs, lies or listens on the hosts that are up.
left() {
    local name
    for name in "${!init[@]}"; do
        processes "$name" all
        compgen -G "$work/tmp.$name/*" || true
        on "$name" ss -H -ltn
    done
}
nothing_is_left() { [[ -z $(left) ]]; }

# Checks the end: every ddprun that the story left alone has the expected code, the result has the bits of an
# undisturbed run, there was no further generation, no two lived at once, and nothing is left.
end_job() {
    local name
    for name in "${!pid[@]}"; do
        [[ -z ${lost[$name]:-} ]] || continue
        join "$name" $((60 + slow_seconds))
        ((code == expected)) || fail "$name ends with $code, not $expected"
    done
    wait_until 10 nothing_is_left || fail "left: $(left)"
    ! compgen -G "$folder/started.$((last + 1)).*" >/dev/null || fail "there is a generation $((last + 1))"
    [[ -n $paused || ! -s $folder/overlap ]] || fail "two generations at once: $(<"$folder/overlap")"
    [[ $expected != 0 || $(checksum_of "$work"/n*.out) == "${calm[$nodes]}" ]] || fail "the checksums differ"
}

# Removes everything of a story, also of one that has failed.
clear_story() {
    local name
    [[ $stalled == no ]] || act_flow
    for name in "${!pid[@]}"; do
        kill -KILL "${pid[$name]}" 2>/dev/null || true
        wait "${pid[$name]}" 2>/dev/null || true
    done
    for name in "${!init[@]}"; do power_off "$name"; done
    pid=() lost=() booted=()
    umount --quiet --lazy "$ledger" || true
    rm -rf "$work"/{ledger,story,disk,tmp.*,n*.out,n*.err}
}
