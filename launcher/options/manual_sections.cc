// The texts of the manual's sections.
#include "launcher/options/manual_sections.h"

namespace ddprun::launcher {
namespace {

constexpr ManualRow kExamples[] = {
    {"srun ddprun train.py --epochs 3",
     "one worker for each GPU on all nodes of the allocation; no other option is needed"},
    {"ddprun --standalone --nproc-per-node=2 train.py",
     "two workers on this machine, without Slurm"},
    {"srun ddprun --dry-run train.py", "what a start would do; --check tests the allocation"},
    {"ddprun --print-sbatch=preemptible train.py >train.sbatch",
     "a batch script to submit, for a job that continues after a preemption or its time limit"},
    {"ddprun --nnodes=2 --node-rank=0 --rdzv-endpoint=host:29500 train.py",
     "without Slurm, once on each of two nodes, with --node-rank=1 on the second"},
};

constexpr ManualRow kExitCodes[] = {
    {"0", "all workers have exited with 0"},
    {"2", "the command line, a configuration file or the layout of the step is wrong"},
    {"69", "the nodes could not meet or could not continue"},
    {"70", "a fault of ddprun itself"},
    {"75",
     "stopped by a time limit, preemption or drain with work left; start the job again, if Slurm "
     "has not done it"},
    {"124", "the job hung (--hang-timeout)"},
    {"126", "the program, or ddprun itself, cannot run here: limits, permissions"},
    {"N",
     "the exit code of the first worker that failed, the same on every node; 128+N if signal N "
     "ended it or stopped the job (143: SIGTERM, 130: Ctrl-C)"},
};

constexpr ManualRow kFiles[] = {
    {".ddprun/",
     "the ledgers of jobs of several nodes under srun, a folder for each job and step; may be "
     "removed when none of these jobs will continue (--ledger)"},
    {"LOG_DIR/RUN_ID_XXXXXXXX/",
     "with --log-dir: attempt_N/LOCAL_RANK/stdout.log and stderr.log of generation N, and "
     "failure.json if the job failed"},
    {"TMPDIR/ddprun*", "error, stop and snapshot files of the workers; removed at the end"},
    {"/etc/ddprun/ddprun.toml",
     "the site's options; must belong to root. Not read by a ddprun that is called torchrun"},
};

constexpr ManualRow kWorkers[] = {
    {"RANK, WORLD_SIZE", "number of the worker in the job, number of workers"},
    {"LOCAL_RANK, LOCAL_WORLD_SIZE", "the same on its node; LOCAL_RANK is the GPU to use"},
    {"GROUP_RANK, GROUP_WORLD_SIZE", "number of its node, number of nodes"},
    {"MASTER_ADDR, MASTER_PORT", "the workers' store, where init_process_group() meets"},
    {"TORCHELASTIC_RESTART_COUNT", "number of the generation: 0, and one more at each restart"},
    {"TORCHELASTIC_RUN_ID", "name of the job"},
    {"DDPRUN_RUN_KEY", "for trackers: 20 letters and digits, the same after restarts and requeues"},
    {"TORCHELASTIC_ERROR_FILE", "where a worker may write its exception, as @record does"},
    {"DDPRUN_STOP_FILE",
     "appears when the job is to stop: JSON with the reason and the seconds left"},
    {"DDPRUN_SNAPSHOT_FILE",
     "this file appears when ddpctl snapshot asks for one: write a snapshot, remove the file, "
     "continue"},
    {"DDPRUN_PROGRESS_FD", "a descriptor for progress: write lines such as step=17"},
    {"DDPRUN_EVENTS_FD",
     "a descriptor for events: a line of JSON for each lost worker or node, each new node, a stop, "
     "a snapshot that is wanted"},
    {"NCCL_RAS_ADDR", "where NCCL's RAS listens (ncclras): a port for each job, if it was not set"},
    {"OMP_NUM_THREADS", "each worker's share of the node's CPUs, if it was not set"},
};

constexpr ManualRow kSignals[] = {
    {"SIGTERM, SIGHUP, SIGQUIT",
     "stop the job: the workers of all nodes get the signal, and SIGKILL after --shutdown-timeout. "
     "A signal that a worker sends to its parent process counts as one to ddprun"},
    {"SIGINT (Ctrl-C)",
     "does the same; a second one kills immediately. A shell script starts programs after & with "
     "SIGINT ignored, and ddprun leaves it so: send SIGTERM there, which always works, also where "
     "the caller has it blocked or ignored"},
    {"SIGUSR1, SIGUSR2",
     "are passed on to workers that handle them and stop nothing, unless --signals-to-handle or "
     "--requeue-signal names them"},
};

constexpr ManualRow kVariables[] = {
    {"PET_NAME",
     "means the option --name; the command line wins; 0 or 1 for an option without a value; an "
     "empty variable counts as not set"},
    {"DDPRUN_CONFIG",
     "means --config; of the sources of an option the stronger are, in this order: command line, "
     "PET_ variable, this file, the site's file"},
    {"DDPRUN_SITE_CONFIG", "none: the site's file is not read"},
    {"PYTHON_EXEC, VIRTUAL_ENV",
     "the interpreter for Python programs, if --python is not given; without them, that of the "
     "environment from which ddprun is called by its path, if PATH does not lead there"},
    {"CUDA_VISIBLE_DEVICES", "the GPUs that are counted, in the order of local ranks"},
    {"OMP_NUM_THREADS", "kept if set; else each worker's share of the node's CPUs"},
    {"LOGLEVEL",
     "DEBUG means --verbose, WARNING means --quiet, ERROR logs errors only; the options win"},
    {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "means --shutdown-timeout, which wins"},
    {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "means --log-line-prefix-template, which wins"},
    {"TORCHELASTIC_ENABLE_FILE_TIMER",
     "with 1 ddprun serves the workers' file timers, as torchrun does"},
};

}  // namespace

std::span<const ManualSection> manual_sections() {
    static constexpr ManualSection kSections[] = {
        {"Examples", "EXAMPLES", true, kExamples},
        {"Exit codes", "EXIT STATUS", true, kExitCodes},
        {"Files", "FILES", false, kFiles},
        {"Environment of the workers", "ENVIRONMENT OF THE WORKERS", false, kWorkers},
        {"Signals", "SIGNALS", false, kSignals},
        {"Variables that ddprun reads", "ENVIRONMENT", false, kVariables},
    };
    return kSections;
}

}  // namespace ddprun::launcher
