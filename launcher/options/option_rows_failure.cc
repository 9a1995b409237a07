// The rows of the options about failures and restarts, and about Slurm: stops, requeue, tasks.
#include "launcher/options/option_rows.h"
#include "launcher/options/option_setters.h"
#include "launcher/options/product_names.h"
#include "launcher/options/signal_names.h"

namespace ddprun::launcher {
namespace {

// With auto, half an hour is the longest time: Gloo itself gives up then.
MaybeError set_hang_timeout(Options& options, const std::string& value) {
    options.hang_auto = value == "auto";
    if (options.hang_auto) {
        options.hang_timeout = std::chrono::minutes{30};
        return std::nullopt;
    }
    if (auto error = store(options.hang_timeout, read_seconds(value))) return error;
    using std::chrono::milliseconds;
    // 0 turns it off. Below a second, ordinary pauses would be taken for a hang.
    if (*options.hang_timeout > milliseconds(0) && *options.hang_timeout < milliseconds(1000))
        return usage_error("too short; give 1 second or more, or 0 for off");
    return std::nullopt;
}

MaybeError set_requeue_begin(Options& options, const std::string& value) {
    options.requeue_begin.reset();
    if (value == "slurm") return std::nullopt;
    const auto time = read_seconds(value);
    if (!time) return time.error();
    // Slurm counts in whole seconds.
    options.requeue_begin = std::chrono::ceil<std::chrono::seconds>(*time);
    if (options.requeue_begin->count() < 1) return usage_error("too short; give 1 second or more");
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
     .brief = "how often the job may restart after failures",
     .choices = "auto",
     .default_text = "auto",
     .help =
         "How often the whole job may restart after workers fail. auto: 3 times, but not before "
         "all workers have met in the store, or have run for 30 s without it, because a failure "
         "before that points to a bug in the script; and not after exit code 2 (a wrong argument, "
         "ranks that differ) without progress",
     .differs = "0, and each node counts its own restarts",
     .set = into<&Options::max_restarts, read_restart_limit>},
    {.name = "crash-loop",
     .placeholder = "N",
     .default_text = "2 with --max-restarts=auto, else 3",
     .help = "Give up after N failures in a row with the same cause and without progress, which is "
             "a line on DDPRUN_PROGRESS_FD or a minute of training; the last of them cold "
             "(--warm); 0: never",
     .set = number<&Options::crash_loop, 0, 1'000'000>},
    {.name = "hang-timeout",
     .placeholder = "SECONDS|auto",
     .brief = "end a job that makes no progress for this time",
     .choices = "auto",
     .products = kDiagnosis,
     .product_value = "auto",
     .default_text = "0 (off)",
     .help =
         "A generation counts as hung if no rank reports progress (a line on "
         "DDPRUN_PROGRESS_FD) for this time plus half a lease, counted from the generation's "
         "first report; or if all its ranks stand still in collectives of Gloo for so long. It "
         "then ends as after a worker's failure, and the log shows where the slowest ranks are. "
         "Choose a time longer than saving and evaluating take. auto: a minute where ranks are in "
         "different collectives, five where nothing at all moves, else half an hour, and longer "
         "than twice the longest pause of the job",
     .set = set_hang_timeout},
    {.name = "flight-recorder",
     .kind = OptionKind::flag,
     .products = kFlightRecorder,
     .help =
         "Ask PyTorch's flight recorder in each worker when all ranks stand still, and name the "
         "call of a collective in which they differ. For this a worker opens a server (nine "
         "threads, and a warning of PyTorch's) as soon as it has imported torch.distributed",
     .set = on<&Options::flight_recorder>},
    {.name = "blame",
     .placeholder = "on|off",
     .choices = "on off",
     .closed = true,
     .default_text = "on",
     .help = "on: if a node was the first cause of the end of two generations within five, a spare "
             "replaces it, if there is one, and the log names it for sbatch --exclude",
     .set = set_blame},
    {.name = "shutdown-timeout",
     .placeholder = "SECONDS",
     .torchrun = true,
     .default_text =
         "TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30; 5 at a restart; 25 under srun after a signal",
     .help = "How long workers have from SIGTERM to SIGKILL, in every stop",
     .differs = "30, even where collectives are already broken, and where Slurm kills after 30",
     .set = seconds<&Options::shutdown_timeout, 0>},
    {.name = "wait-for-helpers",
     .placeholder = "SECONDS",
     .default_text = "0; outside Slurm, called as torchrun: they are left running",
     .help = "How long processes that the workers have left running, such as an upload, may run on "
             "when all workers of the node have succeeded. Then they get SIGTERM and, after "
             "--shutdown-timeout, SIGKILL",
     .set = seconds<&Options::wait_for_helpers, 0>},
    {.name = "unkillable-timeout",
     .placeholder = "SECONDS",
     .default_text = "60",
     .help = "How long a worker may hang in the kernel after SIGKILL. After that its node is "
             "unusable, and the job continues without it or ends",
     .set = seconds<&Options::unkillable_timeout, 1>},
    {.name = "on-failure",
     .placeholder = "PROGRAM",
     .help = "The leading node calls this program once when the job has failed. The program gets "
             "the report as JSON on its standard input, and is killed after 30 s",
     .set = text<&Options::on_failure>},
    {.name = "on-event",
     .placeholder = "PROGRAM",
     .products = kOperators,
     .help =
         "The leading node calls this program for each event of the job (generations, failures, "
         "waits, standstills, the end), which it gets as JSON on its standard input. The job "
         "never waits for it, but ddprun at its end, for 60 s at most",
     .set = text<&Options::on_event>},
    {.name = "signals-to-handle",
     .placeholder = "NAME,...",
     .torchrun = true,
     .default_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .help = "Signals that stop the job and are passed on to the workers. The four default signals "
             "always do. SIGUSR1 and SIGUSR2, if not listed, are passed on and stop nothing",
     .differs = "the same, but its workers become orphans if a signal comes that is not listed",
     .set = set_signals_to_handle},
};

constexpr OptionRow kSlurm[] = {
    {.name = "task-per-worker",
     .kind = OptionKind::flag,
     .help = "Each task that srun starts is one worker, and its rank is SLURM_PROCID, as in srun "
             "--ntasks-per-node=4 python train.py. Without this option several tasks on a node are "
             "refused",
     .set = on<&Options::task_per_worker>},
    {.name = "slurm-env",
     .placeholder = "rewrite|keep|drop",
     .choices = "rewrite keep drop",
     .closed = true,
     .default_text = "rewrite",
     .help = "What workers see of Slurm's variables, which describe ddprun. rewrite: each worker "
             "sees itself as a task of the step (SLURM_PROCID is RANK, ...). drop: workers see no "
             "job. Both remove the variables of PMI and PMIx. keep: the variables stay unchanged",
     .set = into<&Options::slurm_env, read_slurm_env>},
    {.name = "stop-before",
     .placeholder = "SECONDS",
     .default_text =
         "60; if workers report how long a snapshot takes, at least twice that time plus 10",
     .help = "How long before the job's time limit the workers get the stop. The file that "
             "DDPRUN_STOP_FILE names has the reason and the seconds left. The default is never "
             "more than half of the job's time",
     .set = seconds<&Options::stop_before, 1>},
    {.name = "stop-signal",
     .placeholder = "NAME",
     .default_text = "SIGTERM, or the signal that stopped the job",
     .help = "The signal that workers get at such a stop, and at every other stop except after a "
             "failure",
     .set = into<&Options::stop_signal, read_signal>},
    {.name = "on-sigterm",
     .placeholder = "leave|stop",
     .choices = "leave stop",
     .closed = true,
     .default_text = "leave where --nnodes has MIN below MAX and no Slurm step is there; else stop",
     .help = "Effect of SIGTERM to one ddprun. leave: its workers get the stop and may save, then "
             "the job continues without this node and uses up no restart; where fewer than MIN "
             "nodes would be left, the job stops. stop: the whole job stops",
     .set = into<&Options::leaves_on_sigterm, read_on_sigterm>},
    {.name = "requeue",
     .placeholder = "auto|never|always",
     .choices = "auto never always",
     .closed = true,
     .default_text = "auto",
     .help =
         "Whether the job goes back into Slurm's queue after a stop with work left. auto: after a "
         "time limit seen in advance or a signal of --requeue-signal. always: after SIGTERM too, "
         "although it may come from scancel. The exit code is 75, except after SIGTERM",
     .set = into<&Options::requeue, read_requeue>},
    {.name = "requeue-signal",
     .placeholder = "NAME,...",
     .brief = "signals that stop the job and requeue it",
     .help = "Signals to any ddprun that stop the job and put it back into the queue, e.g. USR1",
     .set = into<&Options::requeue_signals, read_signals_freely>},
    {.name = "requeue-begin",
     .placeholder = "SECONDS|slurm",
     .choices = "slurm",
     .default_text = "10",
     .help =
         "How long after its requeue Slurm may start the job again, in place of Slurm's own "
         "delay (two minutes), if that is longer. The delay stays if this run was shorter than "
         "it or made no progress, or if you have held the job, given it a dependency or a later "
         "begin. slurm: never change it",
     .set = set_requeue_begin},
    {.name = "requeue-wait",
     .placeholder = "SECONDS",
     .default_text = "three leases, which is also the least",
     .help = "How long a requeued job waits before it trains, if the job's previous allocation has "
             "recorded no end: its workers may still run",
     .set = seconds<&Options::requeue_wait, 0>},
    {.name = "headless",
     .placeholder = "end|keep",
     .choices = "end keep",
     .closed = true,
     .default_text = "end",
     .help =
         "What happens to the allocation when the job has ended and the host of its batch script "
         "is lost. end: the leading node ends the allocation. keep: it stays until its time limit",
     .set = set_headless},
};

}  // namespace

std::span<const OptionRow> failure_rows() { return kFailure; }
std::span<const OptionRow> slurm_rows() { return kSlurm; }

}  // namespace ddprun::launcher
