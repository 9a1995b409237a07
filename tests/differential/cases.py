"""The cases that torchrun and ddprun are compared in, one line each: together they use every option of torchrun.

Words of a case: WORKER is worker.py, OUT a folder of the case, PORT a free port. `kind` says what a difference of the exit
code is about; `again` are the ten that a run with torch at hand records anew."""
from dataclasses import dataclass, field


@dataclass
class Case:
    name: str
    args: str                                # of the only node
    env: dict = field(default_factory=dict)
    nodes: list = field(default_factory=list)  # of several nodes: each one's words
    kind: str = "job"                        # job, usage, worker, signal: what the exit code tells
    again: bool = False
    signal: int = 0                          # sent to the launcher when so many workers run
    workers: int = 1
    since: int = 1                           # the first major version of torch that can do it


def case(name, args, again=False, kind="job", nodes=(), signal=0, workers=1, since=1, **env):
    return Case(name, args, {k: str(v) for k, v in env.items()}, list(nodes), kind, again, signal, workers, since)


def usage(name, args, **env):
    return case(name, args, kind="usage", **env)


CASES = [
    # Forms
    case("plain", "WORKER a b", again=True),
    case("arguments that look like options", "--nproc-per-node=1 WORKER --nnodes 3 -- --help -x --d 3", again=True),
    case("two dashes before the script", "--nproc-per-node=1 -- WORKER x"),
    case("local_rank in arguments", "--nproc-per-node=2 WORKER --gpu=${local_rank} $local_rank ${other} a$local_ranks"),
    case("dollars", "WORKER a$$b"),
    case("underscores", "--nproc_per_node=2 --max_restarts=0 WORKER"),
    case("values apart", "--nproc-per-node 2 --max-restarts 0 WORKER"),
    case("the last one wins", "--nproc-per-node=3 --nproc-per-node=2 WORKER"),
    case("abbreviations", "--stand --nproc-p=2 --max-r 0 WORKER"),
    case("module", "--standalone -m worker a", PYTHONPATH="WORKERS"),
    case("module, long", "--module worker a", PYTHONPATH="WORKERS"),
    case("no python", "--no-python /usr/bin/env python3 WORKER a"),
    case("run path", "--run-path --nproc-per-node=1 WORKER a", since=2),
    case("start method", "--start-method=spawn WORKER"),
    # Variables
    case("PET_ variables", "WORKER", again=True, PET_NPROC_PER_NODE=2, PET_ROLE="actor", PET_MAX_RESTARTS=1),
    case("the option beats its variable", "--nproc-per-node=1 WORKER", PET_NPROC_PER_NODE=2),
    case("PET_ flags", "WORKER", PET_STANDALONE=1, PET_NO_PYTHON=0),
    case("PET_ without effect", "WORKER", PET_NUMA_BINDING="node", PET_LOGS_SPECS="x"),
    case("noise", "--nproc-per-node=2 WORKER", again=True, RANK=7, WORLD_SIZE=9, LOCAL_RANK=3, MASTER_ADDR="elsewhere",
         MASTER_PORT=1, GROUP_RANK=4, ROLE_RANK=5, NODE_RANK=3, NNODES=8, TORCHELASTIC_RUN_ID="old"),
    case("threads of the user", "--nproc-per-node=2 WORKER", OMP_NUM_THREADS=5),
    case("error handling of the user", "WORKER", TORCH_NCCL_ASYNC_ERROR_HANDLING=0),
    case("torchrun's other variables", "--nproc-per-node=2 WORKER", since=2, TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1,
         TORCH_ELASTIC_WORKER_IDENTICAL=1, TORCHELASTIC_HEALTH_CHECK_PORT=65001, TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT=30,
         TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=30, LOGLEVEL="ERROR"),
    case("timer file", "WORKER", TORCHELASTIC_ENABLE_FILE_TIMER=1),
    case("visible devices", "--nproc-per-node=2 WORKER", CUDA_VISIBLE_DEVICES="3,5"),
    # Nodes and workers
    case("two workers", "--nproc-per-node=2 WORKER", again=True),
    case("one a CPU", "--nproc-per-node=cpu WORKER", since=2),
    case("auto", "--nproc-per-node=auto WORKER", since=2),
    case("role", "--nproc-per-node=2 --role=trainer WORKER", again=True),
    case("two nodes, static", "", again=True, nodes=[
        "--nnodes=2 --node-rank=0 --master-addr=127.0.0.1 --master-port=PORT --nproc-per-node=2 --role=a WORKER",
        "--nnodes=2 --node-rank=1 --master-addr=127.0.0.1 --master-port=PORT --nproc-per-node=1 --role=b WORKER"]),
    case("two nodes, c10d", "", nodes=[
        "--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:PORT --rdzv-id=job --local-addr=127.0.0.1 WORKER",
        "--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:PORT --rdzv-id=job --local-addr=127.0.0.1 WORKER"]),
    case("elastic, with one", "--nnodes=1:2 --rdzv-backend=c10d --rdzv-endpoint=localhost:PORT --rdzv-id=job "
         "--local-addr=127.0.0.1 --rdzv-conf=last_call_timeout=1,join_timeout=20 WORKER"),
    # Meeting
    case("standalone", "--standalone --nproc-per-node=2 WORKER", again=True),
    case("id", "--rdzv-id=mine WORKER"),
    case("c10d on one node", "--rdzv-backend=c10d --rdzv-endpoint=localhost:0 --rdzv-id=mine --local-addr=127.0.0.1 WORKER"),
    case("master port on one node", "--master-port=PORT WORKER"),
    case("rdzv conf", "--standalone --rdzv-conf=read_timeout=30,is_host=1 WORKER"),
    # Failures
    case("exit 3", "--nproc-per-node=2 --max-restarts=0 WORKER", again=True, kind="worker", CASE_DO="exit 3"),
    case("killed", "--max-restarts=0 WORKER", kind="worker", CASE_DO="signal 11"),
    case("restart", "--nproc-per-node=2 --max-restarts=1 --monitor-interval=0.1 WORKER", CASE_DO="once 3"),
    case("a failure on one of two nodes", "", since=2, CASE_DO="once 3", CASE_OF="a", nodes=[
        "--nnodes=2 --node-rank=0 --master-addr=127.0.0.1 --master-port=PORT --max-restarts=1 --role=a WORKER",
        "--nnodes=2 --node-rank=1 --master-addr=127.0.0.1 --master-port=PORT --max-restarts=1 --role=b WORKER"]),
    case("restarts used up", "--max-restarts=1 WORKER", kind="worker", CASE_DO="exit 4"),
    case("SIGTERM", "--nproc-per-node=2 --shutdown-timeout=5 WORKER", kind="signal", signal=15, workers=2, CASE_DO="wait"),
    case("a signal of the list", "--signals-to-handle=SIGUSR1,SIGTERM WORKER", kind="signal", signal=10, CASE_DO="wait"),
    case("shutdown timeout by variable", "WORKER", TORCH_ELASTIC_SHUTDOWN_TIMEOUT=3),
    # Output
    case("redirects", "--nproc-per-node=2 --log-dir=OUT/logs -r 3 WORKER"),
    case("redirects by rank", "--nproc-per-node=2 --log-dir=OUT/logs --redirects=0:1,1:2 WORKER"),
    case("tee", "--nproc-per-node=2 --log-dir=OUT/logs -t3 WORKER"),
    case("tee of some ranks", "--nproc-per-node=2 --log-dir=OUT/logs --tee=3 --local-ranks-filter=1 WORKER"),
    case("prefix template", "--nproc-per-node=2 --log-dir=OUT/logs --tee=1 --log-line-prefix-template=<${rank}> WORKER"),
    case("filters", "--log-dir=OUT/logs --tee=3 --duplicate-stdout-filters=rank --duplicate-stderr-filters=rank WORKER"),
    case("tee and redirects by rank", "--nproc-per-node=2 --log-dir=OUT/logs --tee=0:3,1:1 --redirects=0:1,1:2 WORKER"),
    case("tee and files of every attempt", "--nproc-per-node=2 --max-restarts=1 --monitor-interval=0.1 --log-dir=OUT/logs --tee=1 "
         "-r3 WORKER", CASE_DO="once 3"),
    case("redirects, filtered", "--nproc-per-node=2 --log-dir=OUT/logs --redirects=1 --local-ranks-filter=0 WORKER"),
    case("filters of all ranks", "--nproc-per-node=2 --log-dir=OUT/logs --tee=3 --duplicate-stdout-filters=xyz,rank WORKER"),
    case("filters of the ranks that are shown", "--nproc-per-node=2 --log-dir=OUT/logs --tee=3 --local-ranks-filter=1 "
         "--duplicate-stdout-filters=rank --duplicate-stderr-filters=err,,of WORKER"),
    case("filters with an empty one", "--nproc-per-node=2 --log-dir=OUT/logs --tee=2 --duplicate-stderr-filters=a, "
         "--duplicate-stdout-filters=a, WORKER"),
    case("filters, without --tee", "--log-dir=OUT/logs --redirects=3 --duplicate-stdout-filters=rank WORKER"),
    case("filters with a template", "--nproc-per-node=2 --log-dir=OUT/logs --tee=3 --duplicate-stdout-filters=rank "
         "--log-line-prefix-template=${role_name}/$rank/${x}$$: WORKER"),
    case("prefix template by variable", "--nproc-per-node=2 --log-dir=OUT/logs --tee=2 WORKER", since=2,
         TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE="$local_rank|"),
    case("prefix template, option and variable", "--log-dir=OUT/logs --tee=3 --log-line-prefix-template=a: WORKER",
         TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE="b:"),
    case("no files by the null device", "--nproc-per-node=2 --log-dir=/dev/null --tee=1 --redirects=2 WORKER", since=2),
    case("event handler", "--event-log-handler=null WORKER"),
    case("logs specs", "--logs-specs=default WORKER"),
    # Devices
    case("virtual local rank", "--nproc-per-node=2 --virtual-local-rank WORKER", CUDA_VISIBLE_DEVICES="3, 5"),
    case("virtual local rank without a list", "--nproc-per-node=2 --virtual-local-rank WORKER"),
    case("virtual local rank, ROCm", "--nproc-per-node=2 --virtual-local-rank WORKER", HIP_VISIBLE_DEVICES="6,7"),
    usage("fewer devices than workers", "--nproc-per-node=2 --virtual-local-rank WORKER", CUDA_VISIBLE_DEVICES=3),
    case("NUMA binding without a GPU", "--numa-binding=node WORKER", kind="numa"),
    # What is wrong
    usage("unknown option", "--frobnicate WORKER"),
    usage("no script", "--nproc-per-node=1"),
    usage("a value missing", "--nproc-per-node"),
    usage("ambiguous", "--rdzv=x WORKER"),
    usage("workers in words", "--nproc-per-node=four WORKER"),
    usage("no workers", "--nproc-per-node=0 WORKER"),
    usage("gpu without one", "--nproc-per-node=gpu WORKER"),
    usage("range the wrong way", "--nnodes=2:1 WORKER"),
    usage("range of three", "--nnodes=1:2:3 WORKER"),
    usage("negative restarts", "--max-restarts=-1 WORKER"),
    usage("unknown backend", "--rdzv-backend=frob WORKER"),
    usage("bad conf", "--rdzv-backend=c10d --rdzv-endpoint=localhost:0 --rdzv-conf=a WORKER"),
    usage("bad port", "--rdzv-backend=c10d --rdzv-endpoint=localhost:99999 WORKER"),
    usage("module and no python", "--module --no-python WORKER"),
    usage("bad flag variable", "WORKER", PET_STANDALONE="yes"),
    usage("bad redirects", "--redirects=4 WORKER"),
    usage("bad start method", "--start-method=frob WORKER"),
    usage("bad binding", "--numa-binding=frob WORKER"),
    usage("program not found", "--no-python OUT/nothing"),
    usage("negative timeout", "--shutdown-timeout=-1 WORKER"),
    usage("unknown handler", "--event-log-handler=frob WORKER"),
    usage("unknown specs", "--logs-specs=frob WORKER"),
    usage("a signal that cannot be handled", "--signals-to-handle=SIGKILL WORKER"),
    case("a signal that is none", "--signals-to-handle=SIGFROB,SIGTERM WORKER", kind="unknown-signal"),
    # What prints
    case("help", "--help", kind="prints"),
    case("completion", "--print-completion=bash", kind="completion"),
]
