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
"$python" -c 'import torch; print("PyTorch", torch.__version__)' 2>"$work/import.err" || skip "$python has no torch"
torchrun=("$python" -m torch.distributed.run)
export TORCH_CPP_LOG_LEVEL=ERROR TORCH_DISABLE_ADDR2LINE=1 # no warnings of PyTorch about what the tests do on purpose
export PYTHON_EXEC=$python GLOO_SOCKET_IFNAME=lo

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
