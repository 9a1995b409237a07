// The table of all options. A new option is one row here and one setter in option_setters.cc.
#include "launcher/options/option_table.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace ddprun::launcher {
namespace {

using enum OptionKind;
using Group = OptionGroup;

// In the order of --help. Columns as in OptionRow: name, letter, placeholder, kind, group, torchrun
// has it, default, help, torchrun's different default, choices, PET_ variable counts, implied
// value.
constexpr OptionRow kTable[] = {
    {"nnodes", 0, "N|MIN:MAX", value, Group::nodes, true, "1; under srun the nodes of the step",
     "How many nodes take part; with a range the job goes on with MIN of them",
     "1, which makes each node of a step a job of its own"},
    {"nproc-per-node", 0, "N|auto|gpu|cpu", value, Group::nodes, true, "one a GPU, else 1",
     "Workers on each node. auto: one a GPU, without GPUs one a CPU",
     "1, which leaves all other GPUs idle", "auto gpu cpu"},
    {"node-rank", 0, "N", value, Group::nodes, true, "",
     "Rank of this node; the one with 0 leads. Not needed under srun, where SLURM_NODEID counts",
     "0, of which c10d takes no notice: names decide there"},
    {"standalone", 0, "", flag, Group::nodes, true, "",
     "One node, nobody else: no endpoint is needed"},

    {"rdzv-backend", 0, "NAME", value, Group::meeting, true, "ddprun",
     "Accepted for torchrun's sake (static, c10d): the rendezvous is always ddprun's own",
     "static, where nobody sees the loss of a node", "ddprun static c10d"},
    {"rdzv-endpoint", 0, "HOST[:PORT]", value, Group::meeting, true,
     "under srun the step's first node, port 29400",
     "Where the nodes meet: the node that has this address leads",
     "nothing, though Slurm knows it"},
    {"rdzv-id", 0, "ID", value, Group::meeting, true, "none; under srun cluster, job and step",
     "Name of the job, the same on all nodes", "none, which all jobs share"},
    {"rdzv-conf", 0, "KEY=VALUE,...", value, Group::meeting, true, "",
     "torchrun's keys: join_timeout, last_call_timeout, keep_alive_interval times "
     "keep_alive_max_attempt (the lease), is_host (0 on all nodes: a ddprun-rendezvous leads at "
     "the endpoint), with static timeout; others have no effect"},
    {"master-addr", 0, "HOST", value, Group::meeting, true, "127.0.0.1",
     "Where the nodes meet without --rdzv-endpoint"},
    {"master-port", 0, "PORT", value, Group::meeting, true, "29500", "Port for --master-addr"},
    {"local-addr", 0, "ADDRESS", value, Group::meeting, true, "the one that reaches the leader",
     "Address of this node that the others are told",
     "the full host name, which other nodes may not be able to look up"},
    {"interface", 0, "NAME", value, Group::meeting, false, "",
     "The same, as that of a network interface which all nodes have: ib0"},
    {"ports", 0, "FROM-TO", value, Group::meeting, false,
     "under srun SLURM_STEP_RESV_PORTS, else made from job and step",
     "Ports to try for the rendezvous, in this order"},
    {"ledger", 0, "memory|directory:PATH|etcd:HOST:PORT,...", value, Group::meeting, false,
     "under srun with several nodes .ddprun in the working directory, else memory",
     "Where generations are written down. On a file system that all nodes share, or in etcd 3, the "
     "loss of the leader's node does not end the job"},
    {"secret-file", 0, "PATH", value, Group::meeting, false,
     "MUNGE, else a file in the ledger's folder",
     "A file that only the user can read, with the same 16 bytes or more on all nodes: without it "
     "nobody can join or stop the job. head -c 32 /dev/urandom | base64 makes one"},
    {"identity", 0, "auto|require|none", value, Group::meeting, false, "auto",
     "auto: nodes prove that they are of this job's user, where there is a secret to prove it by, "
     "else a warning says that anybody may join. require: no secret, no job. none: no proof is "
     "asked for",
     "", "auto require none"},
    {"lease", 0, "SECONDS", value, Group::meeting, false, "10",
     "A generation trains only while all its nodes hear each other within this time; one node may "
     "stall for half this time without effect"},
    {"join-timeout", 0, "SECONDS", value, Group::meeting, false, "600",
     "How long to wait for MIN nodes"},
    {"last-call", 0, "SECONDS", value, Group::meeting, false, "30",
     "How long to wait for more than MIN nodes at the first start"},

    {"on-join", 0, "restart|wait|spare", value, Group::meeting, false, "restart",
     "What to do with a node that joins while fewer than MAX run: a larger world at the next "
     "snapshot, a place in the next generation whenever that begins, or a spare for one that is "
     "lost",
     "", "restart wait spare"},
    {"join-interval", 0, "SECONDS", value, Group::meeting, false, "600",
     "With --on-join=restart: how long such a node waits for a snapshot at the most"},

    {"max-restarts", 0, "N|auto", value, Group::failure, true, "auto",
     "Restarts after failures of workers, for the whole job. auto: 3, but none before the job has "
     "made progress, for that is a bug in the script",
     "0, and its restarts are counted by each node for itself", "auto"},
    {"crash-loop", 0, "N", value, Group::failure, false, "3",
     "Give up after N deaths in a row of the same cause without progress; 0: never"},
    {"hang-timeout", 0, "SECONDS", value, Group::failure, false, "0, which is off",
     "A generation in which no rank reports progress (a line on DDPRUN_PROGRESS_FD) for so long "
     "and half a lease, counted from its first report, is taken for hung: it ends as by a worker's "
     "failure, and the log shows where the slowest ranks are. Choose it longer than saving and "
     "evaluating take"},
    {"blame", 0, "on|off", value, Group::failure, false, "on",
     "Whether a node that was the first cause of a generation's end twice within five is replaced "
     "by a spare, where there is one, and named for sbatch --exclude",
     "", "on off"},
    {"shutdown-timeout", 0, "SECONDS", value, Group::failure, true,
     "TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30; 5 at a restart; 25 under srun when a signal came",
     "Time between SIGTERM and SIGKILL for the workers, in every stop",
     "30, also where collectives are broken anyway, and where Slurm kills after 30"},
    {"unkillable-timeout", 0, "SECONDS", value, Group::failure, false, "60",
     "How long a worker may outlive SIGKILL, hanging in the kernel; then its node is unusable, and "
     "the job goes on without it or ends"},
    {"on-failure", 0, "PROGRAM", value, Group::failure, false, "",
     "Called once when the job has failed, by the node that leads, with the report as JSON on its "
     "standard input; killed after 30 s"},
    {"signals-to-handle", 0, "NAME,...", value, Group::failure, true,
     "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     "Signals that stop the job and are passed on to the workers; the four of the default always "
     "do; SIGUSR1 and SIGUSR2, where not named, are passed on and stop nothing",
     "the same; its workers are orphans when one comes that the list leaves out"},

    {"log-dir", 0, "PATH", value, Group::output, true,
     "a new folder in TMPDIR, where files are asked for",
     "Folder for the files of --redirects and --tee: RUN_XXXXXXXX/attempt_GENERATION/LOCAL_RANK/ "
     "with stdout.log and stderr.log, which nothing writes over. /dev/null: no files",
     "a new folder in TMPDIR at every start, which nobody removes"},
    {"redirects", 'r', "DIGIT|RANK:DIGIT,...", value, Group::output, true, "0",
     "Streams of the workers that go to files: 0 none, 1 stdout, 2 stderr, 3 both", "", "0 1 2 3"},
    {"tee", 't', "DIGIT|RANK:DIGIT,...", value, Group::output, true, "0",
     "The same, and to the console too", "", "0 1 2 3"},
    {"duplicate-stdout-filters", 0, "TEXT,...", value, Group::output, true, "",
     "Lines of stdout of --tee with one of these texts in them also go to filtered_stdout.log of "
     "the generation, one file for all ranks; two commas stand for one in a text"},
    {"duplicate-stderr-filters", 0, "TEXT,...", value, Group::output, true, "",
     "The same for stderr: filtered_stderr.log"},
    {"local-ranks-filter", 0, "RANK,...", value, Group::output, true, "",
     "Local ranks that may write to the console"},
    {"label", 0, "", flag, Group::output, false, "with more than one worker, and for --tee",
     "Put the rank in front of each line on the console"},
    {"no-label", 0, "", flag, Group::output, false, "", "Do not"},
    {"log-line-prefix-template", 0, "TEXT", value, Group::output, true,
     "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, else [${role_name}${local_rank}]:",
     "What stands in front of such a line; there are ${role_name}, ${local_rank}, ${rank} and "
     "${hostname}"},
    {"console-overflow", 0, "block|drop", value, Group::output, false, "block",
     "When 64 MiB wait for a console that is too slow: block, and workers that print wait; drop, "
     "and the oldest lines are dropped and counted. Files get all lines",
     "", "block drop"},
    {"verbose", 'v', "", flag, Group::output, false, "", "Say more, as LOGLEVEL=DEBUG does"},
    {"quiet", 'q', "", flag, Group::output, false, "",
     "Say warnings and errors only, as LOGLEVEL=WARNING does"},

    {"module", 'm', "", flag, Group::worker, true, "",
     "The program is a Python module, run as python -m"},
    {"no-python", 0, "", flag, Group::worker, true, "",
     "Run the program itself, whatever its name"},
    {"run-path", 0, "", flag, Group::worker, true, "",
     "Run the program as a Python script, whatever its name"},
    {"python", 0, "PATH", value, Group::worker, false,
     "PYTHON_EXEC, the virtual environment's, python3", "The interpreter of Python programs"},
    {"role", 0, "NAME", value, Group::worker, true, "default", "Label of these workers"},
    {"virtual-local-rank", 0, "", flag, Group::worker, true, "",
     "Each worker sees one GPU, and LOCAL_RANK=0"},
    // The `false` at the end of a row: the option has no PET_ variable (this one has none in
    // torchrun, either).
    {"numa-binding", 0, "node|socket|exclusive|core-complex", value, Group::worker, true, "",
     "Bind each worker to CPUs near its GPU: its NUMA node's, its socket's, a share of the node's "
     "cores, or the cores of one cache. Without GPUs the nodes are dealt out evenly",
     "", "node socket exclusive core-complex", false},

    {"task-per-worker", 0, "", flag, Group::slurm, false, "",
     "Each task that srun starts is one worker, as in srun --ntasks-per-node=4 python train.py: "
     "its rank is SLURM_PROCID. Without it several tasks on a node are refused"},
    {"slurm-env", 0, "rewrite|keep|drop", value, Group::slurm, false, "rewrite",
     "Slurm's variables in the workers, which describe ddprun. rewrite: each worker sees itself as "
     "a task of the step (SLURM_PROCID is RANK, ...). drop: it sees no job. Both remove those of "
     "PMI and PMIx. keep: as they are",
     "", "rewrite keep drop"},

    {"stop-before", 0, "SECONDS", value, Group::slurm, false,
     "60, or twice the last snapshot's duration and 10, where workers tell it",
     "How long before the end of the job's time the workers are told to stop; a file that "
     "DDPRUN_STOP_FILE names says why and how long they have. By default at most half of the time "
     "that the job had"},
    {"stop-signal", 0, "NAME", value, Group::slurm, false, "SIGTERM, or the signal that came",
     "What workers get at such a stop, and at every other that is not a failure's"},
    {"requeue", 0, "auto|never|always", value, Group::slurm, false, "auto",
     "Whether the job goes back into Slurm's queue when it was stopped with work left. auto: by a "
     "time limit seen coming or a signal of --requeue-signal. always: by SIGTERM too, which may be "
     "scancel's. The code is 75 in any case but SIGTERM's",
     "", "auto never always"},
    {"requeue-signal", 0, "NAME,...", value, Group::slurm, false, "",
     "Signals of sbatch --signal that stop the job to go on from the queue, e.g. USR1"},
    {"headless", 0, "end|keep", value, Group::slurm, false, "end",
     "What becomes of the allocation when the job has ended and the host of its batch script is "
     "lost. end: the node that leads ends it. keep: it stays until its time limit",
     "", "end keep"},

    {"store-allow", 0, "NET,...|any", value, Group::store, false, "",
     "Who may connect besides the job's nodes: addresses or networks, e.g. 10.0.0.0/8"},
    {"store-max-connections", 0, "N", value, Group::store, false, "100000", "Connections at once"},
    {"store-max-key", 0, "BYTES", value, Group::store, false, "64K", "Length of a key"},
    {"store-max-value", 0, "BYTES", value, Group::store, false, "1G", "Length of a value"},
    {"store-max-keys", 0, "N", value, Group::store, false, "1M", "Keys in one request"},
    {"store-max-request", 0, "BYTES", value, Group::store, false, "2G",
     "Keys and values of one request together"},
    {"store-max-queued", 0, "BYTES", value, Group::store, false, "256M",
     "Replies waiting for a worker that does not read them; more closes its connection"},
    {"store-max-memory", 0, "BYTES", value, Group::store, false, "8G",
     "All that the store holds; a client that adds more loses its connection"},

    // For ignored options the help text is the reason why they have no effect; the warning prints
    // it.
    {"monitor-interval", 0, "SECONDS", ignored, Group::other, true, "",
     "ddprun notices the end of a worker at once"},
    {"start-method", 0, "spawn|fork|forkserver", ignored, Group::other, true, "",
     "every worker is a program of its own", "", "spawn fork forkserver"},
    {"event-log-handler", 0, "NAME", ignored, Group::other, true, "null",
     "ddprun writes its own events", "", "null console dynamic_rendezvous"},
    {"logs-specs", 0, "NAME", ignored, Group::other, true, "default", "it names a class in Python",
     "", "default", false},
    {"exit-barrier-timeout", 0, "SECONDS", ignored, Group::other, true, "",
     "all nodes end together"},
    {"use-env", 0, "", ignored, Group::other, false, "",
     "LOCAL_RANK is always in the environment, and never an argument", "", "", false},
    {"dry-run", 0, "text|json", value, Group::other, false, "",
     "Print what would be done, and start nothing: nodes, ranks, devices, variables, times, files; "
     "on a login node too. Of a step that srun starts, its first node prints it",
     "", "text json", false, "text"},
    {"check", 0, "text|json", value, Group::other, false, "",
     "Test the allocation in place of a start, and print each problem with its fix: all nodes meet "
     "and reach each other, see the ledger, have their GPUs, clocks, space and limits; with a "
     "problem the exit code is 69. No program need be given",
     "", "text json", false, "text"},
    {"print-completion", 0, "bash|zsh|fish|tcsh", value, Group::other, true, "",
     "Print the completion of that shell and leave", "", "bash zsh fish tcsh", false},
    {"print-man", 0, "", flag, Group::other, false, "",
     "Print the manual page and leave: ddprun --print-man | man -l -", "", "", false},
    {"version", 0, "", flag, Group::other, false, "", "Print the version and leave", "", "", false},
    {"help", 'h', "", flag, Group::other, true, "", "Print this and leave", "", "", false},
};

// Names that people bring along from elsewhere.
constexpr OtherName kOtherNames[] = {
    // An option of torch.distributed.launch before torch 1.9.
    {"logdir", "log-dir", true},
    // Options of accelerate, mpirun, srun and DeepSpeed.
    {"num-processes", "nproc-per-node", false},
    {"num-gpus", "nproc-per-node", false},
    {"gpus-per-node", "nproc-per-node", false},
    {"ntasks-per-node", "nproc-per-node", false},
    {"np", "nproc-per-node", false},
    {"num-machines", "nnodes", false},
    {"num-nodes", "nnodes", false},
    {"nodes", "nnodes", false},
    {"machine-rank", "node-rank", false},
    {"main-process-ip", "master-addr", false},
    {"main-process-port", "master-port", false},
    {"hostfile", "rdzv-endpoint", false},
};

}  // namespace

std::span<const OptionRow> option_table() { return kTable; }
std::span<const OtherName> other_names() { return kOtherNames; }

// Names that are asked for here stand in our own code, so a missing one is a programmer's mistake.
const OptionRow& option_row(std::string_view name) {
    auto row = std::ranges::find(kTable, name, &OptionRow::name);
    DDPRUN_CHECK(row != std::end(kTable), "an option that is not in the table");
    return *row;
}

std::string_view title(OptionGroup group) {
    switch (group) {
        case Group::nodes:
            return "Nodes and workers";
        case Group::meeting:
            return "Meeting";
        case Group::failure:
            return "When something fails";
        case Group::output:
            return "Output";
        case Group::worker:
            return "The worker";
        case Group::slurm:
            return "Slurm";
        case Group::store:
            return "The workers' store (passing a limit closes that connection; K, M, G: 1024s)";
        case Group::other:
            return "Other";
    }
    return "";
}

std::string pet_variable(const OptionRow& row) {
    std::string name = "PET_";
    // Names have lower-case letters, dashes and no digits, which makes this conversion enough.
    for (char c : row.name) name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
    return name;
}

}  // namespace ddprun::launcher
