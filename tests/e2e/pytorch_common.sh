# shellcheck shell=bash disable=SC2034
# For the tests with a real PyTorch: which one. Sourced, after common.sh's own; argument: debian (python3-torch) or
# current (the virtual environment of tests/run.sh). Sets python and torchrun.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case ${1:-debian} in
    debian) python=/usr/bin/python3 ;;
    current) python=${DDPRUN_TORCH_VENV:-$root/build/torch-venv}/bin/python ;;
    *) fail "debian or current?" ;;
esac
[[ -x $python ]] || skip "no $python; tests/run.sh --long makes it"
# Its version without importing it, which takes two seconds.
"$python" -c '
import importlib.util, runpy
folder = importlib.util.find_spec("torch").submodule_search_locations[0]
print("PyTorch", runpy.run_path(folder + "/version.py")["__version__"])' 2>"$work/import.err" || skip "$python has no torch"
torchrun=("$python" -m torch.distributed.run)
export TORCH_CPP_LOG_LEVEL=ERROR TORCH_DISABLE_ADDR2LINE=1 # no warnings of PyTorch about what the tests do on purpose
export PYTHON_EXEC=$python GLOO_SOCKET_IFNAME=lo
# A fork server imports PyTorch beside each job: 3 s of a processor, for nothing where no worker is started again.
export PET_WARM=off
with_fork_server() { unset PET_WARM; } # for the stories that follow: as a user has it

# PyTorch 2.15 with gloo aborts now and then in a thread of its own while a worker's interpreter ends, whoever started
# it (pytorch issue 190489, pull request 179291). Such a run says nothing about the launcher and is repeated: file.
aborted_at_exit() { grep -q '^terminate called without an active exception' "$1"; }

# Starts a server that prints its port and serves until its input ends: name, command… Sets ${server_port[name]}.
declare -A server_port server_input
serve() {
    local name=$1 input; shift
    mkfifo "$work/$name.fifo"
    DDPRUN_TEST_MARK=$mark "$@" <"$work/$name.fifo" >"$work/$name.port" 2>"$work/$name.err" &
    exec {input}>"$work/$name.fifo"
    server_input[$name]=$input
    wait_until 60 test -s "$work/$name.port" || fail "the server $name did not start"
    server_port[$name]=$(<"$work/$name.port")
}
