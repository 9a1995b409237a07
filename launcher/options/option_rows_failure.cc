// The rows of the options about failures and restarts, and about Slurm: stops, requeue, tasks.
#include "launcher/options/option_rows.h"
#include "launcher/options/option_setters.h"
#include "launcher/options/signal_names.h"

namespace ddprun::launcher {
namespace {

MaybeError set_hang_timeout(Options& options, const std::string& value) {
    if (auto error = store(options.hang_timeout, read_seconds(value))) return error;
    using std::chrono::milliseconds;
    // 0 turns it off. Below a second, ordinary pauses would be taken for a hang.
    if (*options.hang_timeout > milliseconds(0) && *options.hang_timeout < milliseconds(1000))
        return usage_error("too short; give 1 second or more, or 0 for off");
    return std::nullopt;
}

MaybeError set_blame(Options& options, const std::string& value) {
    options.blame = value == "on";
    return std::nullopt;
}

// The text itself is kept, too: workers get it as the user wrote it.
MaybeError set_signals_to_handle(Options& options, const std::string& value) {
    options.signal_names = value;
    return store(options.signals, read_signals(value));
}

MaybeError set_headless(Options& options, const std::string& value) {
    options.end_headless = value == "end";
    return std::nullopt;
}

constexpr OptionRow kFailure[] = {
    {.name = "max-restarts",
     .placeholder = "N|auto",
     .torchrun = true,
     .choices = "auto",
     .default_text = "auto",
     .help =
         "Restarts after failures of workers, for the whole job. auto: 3, but none before the job "
         "has made progress, for that is a bug in the script",
     .differs = "0, and its restarts are counted by each node for itself",
     .set = into<&Options::max_restarts, read_restart_limit>},
    {.name = "crash-loop",
     .placeholder = "N",
     .default_text = "3",
     .help = "Give up after N deaths in a row of the same cause without progress; 0: never",
     .set = number<&Options::crash_loop, 0, 1'000'000>},
    {.name = "hang-timeout",
     .placeholder = "SECONDS",
     .default_text = "0, which is off",
     .help =
         "A generation in which no rank reports progress (a line on DDPRUN_PROGRESS_FD) for so "
         "long and half a lease, counted from its first report, is taken for hung: it ends as by "
         "a worker's failure, and the log shows where the slowest ranks are. Choose it longer "
         "than saving and evaluating take",
     .set = set_hang_timeout},
    {.name = "blame",
     .placeholder = "on|off",
     .choices = "on off",
     .closed = true,
     .default_text = "on",
     .help = "Whether a node that was the first cause of a generation's end twice within five is "
             "replaced by a spare, where there is one, and named for sbatch --exclude",
     .set = set_blame},
    {.name = "shutdown-timeout",
     .placeholder = "SECONDS",
     .torchrun = true,
     .default_text =
         "TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30; 5 at a restart; 25 under srun when a signal "
         "came",
     .help = "Time between SIGTERM and SIGKILL for the workers, in every stop",
     .differs = "30, also where collectives are broken anyway, and where Slurm kills after 30",
     .set = seconds<&Options::shutdown_timeout, 0>},
    {.name = "unkillable-timeout",
     .placeholder = "SECONDS",
     .default_text = "60",
     .help = "How long a worker may outlive SIGKILL, hanging in the kernel; then its node is "
             "unusable, and the job goes on without it or ends",
     .set = seconds<&Options::unkillable_timeout, 1>},
    {.name = "on-failure",
     .placeholder = "PROGRAM",
     .help =
         "Called once when the job has failed, by the node that leads, with the report as JSON on "
         "its standard input; killed after 30 s",
     .set = text<&Options::on_failure>},
    {.name = "signals-to-handle",
     .placeholder = "NAME,...",
     .torchrun = true,
     .default_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .help = "Signals that stop the job and are passed on to the workers; the four of the default "
             "always do; SIGUSR1 and SIGUSR2, where not named, are passed on and stop nothing",
     .differs = "the same; its workers are orphans when one comes that the list leaves out",
     .set = set_signals_to_handle},
};

constexpr OptionRow kSlurm[] = {
    {.name = "task-per-worker",
     .kind = OptionKind::flag,
     .help = "Each task that srun starts is one worker, as in srun --ntasks-per-node=4 python "
             "train.py: its rank is SLURM_PROCID. Without it several tasks on a node are refused",
     .set = on<&Options::task_per_worker>},
    {.name = "slurm-env",
     .placeholder = "rewrite|keep|drop",
     .choices = "rewrite keep drop",
     .closed = true,
     .default_text = "rewrite",
     .help = "Slurm's variables in the workers, which describe ddprun. rewrite: each worker sees "
             "itself as a task of the step (SLURM_PROCID is RANK, ...). drop: it sees no job. Both "
             "remove those of PMI and PMIx. keep: as they are",
     .set = into<&Options::slurm_env, read_slurm_env>},
    {.name = "stop-before",
     .placeholder = "SECONDS",
     .default_text = "60, or twice the last snapshot's duration and 10, where workers tell it",
     .help =
         "How long before the end of the job's time the workers are told to stop; a file that "
         "DDPRUN_STOP_FILE names says why and how long they have. By default at most half of the "
         "time that the job had",
     .set = seconds<&Options::stop_before, 1>},
    {.name = "stop-signal",
     .placeholder = "NAME",
     .default_text = "SIGTERM, or the signal that came",
     .help = "What workers get at such a stop, and at every other that is not a failure's",
     .set = into<&Options::stop_signal, read_signal>},
    {.name = "requeue",
     .placeholder = "auto|never|always",
     .choices = "auto never always",
     .closed = true,
     .default_text = "auto",
     .help =
         "Whether the job goes back into Slurm's queue when it was stopped with work left. auto: "
         "by a time limit seen coming or a signal of --requeue-signal. always: by SIGTERM too, "
         "which may be scancel's. The code is 75 in any case but SIGTERM's",
     .set = into<&Options::requeue, read_requeue>},
    {.name = "requeue-signal",
     .placeholder = "NAME,...",
     .help = "Signals of sbatch --signal that stop the job to go on from the queue, e.g. USR1",
     .set = into<&Options::requeue_signals, read_signals_freely>},
    {.name = "headless",
     .placeholder = "end|keep",
     .choices = "end keep",
     .closed = true,
     .default_text = "end",
     .help =
         "What becomes of the allocation when the job has ended and the host of its batch script "
         "is lost. end: the node that leads ends it. keep: it stays until its time limit",
     .set = set_headless},
};

}  // namespace

std::span<const OptionRow> failure_rows() { return kFailure; }
std::span<const OptionRow> slurm_rows() { return kSlurm; }

}  // namespace ddprun::launcher
