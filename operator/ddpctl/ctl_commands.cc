// The rows of ddpctl's commands.
#include "operator/ddpctl/ctl_commands.h"

namespace ddprun::launcher {
namespace {

constexpr OptionRow kForAll[] = {
    {.name = "ledger",
     .placeholder = "PATH",
     .default_text = ".ddprun",
     .help = "The folder with the ledgers of jobs, as a job's --ledger=directory:PATH names it, or "
             "one of them; or etcd:HOST:PORT, or etcd:HOST:PORT/NAME"},
    {.name = "etcd-user-file", .placeholder = "PATH", .help = "As the job's, for a ledger in etcd"},
    {.name = "etcd-cacert", .placeholder = "PATH", .help = "As the job's, for a ledger in etcd"},
    {.name = "etcd-cert", .placeholder = "PATH", .help = "As the job's, for a ledger in etcd"},
    {.name = "etcd-key", .placeholder = "PATH", .help = "As the job's, for a ledger in etcd"},
    {.name = "json", .kind = OptionKind::flag, .help = "Print JSON, for programs"},
    {.name = "help", .letter = 'h', .kind = OptionKind::flag, .help = "Print this help and exit"},
};

constexpr OptionRow kWithoutCommand[] = {
    {.name = "print-completion",
     .placeholder = "bash|zsh|fish",
     .choices = "bash zsh fish",
     .closed = true,
     .help = "Print the completion script for that shell and exit"},
    {.name = "print-man",
     .kind = OptionKind::flag,
     .help = "Print the manual page and exit: ddpctl --print-man | man -l -"},
    {.name = "version", .kind = OptionKind::flag, .help = "Print the version and exit"},
};

constexpr OptionRow kForget[] = {
    {.name = "older-than",
     .placeholder = "AGE",
     .help = "Only ledgers whose newest entry is older, such as 30d, 12h or 0s (all). Without a "
             "NAME: all that are so old"},
    {.name = "dry-run",
     .kind = OptionKind::flag,
     .help = "Print what would be removed, and remove nothing"},
    {.name = "force",
     .kind = OptionKind::flag,
     .help = "Also a NAME that has work left or has recorded no end. Such a job may run, or be "
             "started again by Slurm; without its ledger it fails or begins again"},
};

constexpr OptionRow kSecretFile = {
    .name = "secret-file",
    .placeholder = "PATH",
    .help =
        "The job's --secret-file, if it has one. Without it the secret is that of MUNGE or of "
        "the ledger's folder, as for the job's nodes"};
constexpr OptionRow kEndpoint = {
    .name = "rdzv-endpoint",
    .placeholder = "HOST:PORT",
    .help =
        "Where the job's nodes meet, the same as its own option: for a job that has no ledger "
        "which others can read, or whose nodes meet at ddprun-rendezvous"};
constexpr OptionRow kRunId = {
    .name = "rdzv-id",
    .placeholder = "ID",
    .help = "With --rdzv-endpoint: the run, where several meet at one ddprun-rendezvous"};
constexpr OptionRow kReading[] = {kSecretFile};
constexpr OptionRow kJobs[] = {
    kSecretFile,
    {.name = "all",
     .kind = OptionKind::flag,
     .help = "Also the jobs of other users that run on this host, for root"},
};
constexpr OptionRow kAsking[] = {kSecretFile, kEndpoint, kRunId};
constexpr OptionRow kEvents[] = {
    kSecretFile,
    kEndpoint,
    kRunId,
    {.name = "follow",
     .letter = 'f',
     .kind = OptionKind::flag,
     .help = "Go on until the job ends, also when another node leads"},
};

constexpr OptionRow kTop[] = {
    kSecretFile,
    kEndpoint,
    kRunId,
    {.name = "every", .placeholder = "SECONDS", .default_text = "2", .help = "Between two looks"},
};

constexpr OptionRow kLogs[] = {
    kSecretFile,
    kEndpoint,
    kRunId,
    {.name = "follow",
     .letter = 'f',
     .kind = OptionKind::flag,
     .help = "Go on until the job ends, also in the next generation and on another node"},
    {.name = "lines",
     .placeholder = "N",
     .default_text = "20",
     .help =
         "So many of the last lines first, among the 64 KiB that the node keeps of each worker"},
};

constexpr OptionRow kPage[] = {
    kSecretFile,
    kEndpoint,
    kRunId,
    {.name = "listen",
     .placeholder = "ADDRESS:PORT",
     .default_text = "127.0.0.1:0",
     .help = "Where to serve it; port 0 is a free one. Whoever can read the network up to another "
             "address than 127.0.0.1 can read the page and its token, since it is not encrypted"},
    {.name = "token-file",
     .placeholder = "PATH",
     .help = "A file with the token to ask for, which only you may read, for programs such as "
             "Prometheus. Without it each start makes a random one"},
};

constexpr OptionRow kStop[] = {
    kSecretFile,
    kEndpoint,
    kRunId,
    {.name = "after-snapshot",
     .kind = OptionKind::flag,
     .help = "Ask for a snapshot first, and stop when one is reported. If the job's leader is lost "
             "before, ask again"},
    {.name = "yes",
     .letter = 'y',
     .kind = OptionKind::flag,
     .help = "If the job waits in Slurm's queue after a requeue: cancel it without asking"},
};

constexpr OptionRow kLimits[] = {
    kSecretFile,
    kEndpoint,
    kRunId,
    {.name = "min-nodes", .placeholder = "N", .help = "A generation needs so many nodes"},
    {.name = "max-nodes", .placeholder = "N", .help = "A generation has no more nodes"},
    {.name = "max-restarts",
     .placeholder = "N",
     .help = "So many restarts in the whole job, with those that are used up"},
};

constexpr Command kCommands[] = {
    {.name = "status",
     .words = "[NAME]",
     .what = "Show the state of a running job",
     .help =
         "Asks the job's leader: which generation runs, what the job waits for and why, the "
         "restarts, what ended the last generation, the time left, and each node with its "
         "ranks. Of more "
         "than 40 nodes only those are shown that do not run. NAME is an id in Slurm (1001, "
         "1001_3), a run name, or the process id of a ddprun on this host. Without it the job "
         "of this folder is meant (of several that of SLURM_JOB_ID), else the only one that you "
         "run on this host.",
     .rows = kAsking},
    {.name = "top",
     .words = "[NAME]",
     .what = "Show the state of a running job again and again",
     .help = "Shows what status shows, and the steps a second, until the job ends. On a terminal "
             "it updates one page; otherwise the tables follow each other.",
     .rows = kTop},
    {.name = "why",
     .words = "[NAME]",
     .what = "Show why a running job makes no progress",
     .help = "Says what the job waits for, or for which rank the others wait.",
     .rows = kAsking},
    {.name = "events",
     .words = "[NAME]",
     .what = "Show what happens in a running job",
     .help = "Prints a line for each generation, node and leader that changes, as seen each "
             "quarter of a second.",
     .rows = kEvents},
    {.name = "logs",
     .words = "[NAME] RANK",
     .what = "Show what a worker of a running job prints",
     .help = "Asks the node of this rank for the last lines of both streams. To a file or pipe "
             "they come as the worker wrote them. On a terminal each has its prefix, and what a "
             "terminal would obey is escaped, so no worker can pretend to be ddpctl. A reader that "
             "is too slow loses lines, and ddpctl prints how many; no worker waits for it. "
             "ddpctl's own sentences are on standard error.",
     .rows = kLogs},
    {.name = "stacks",
     .words = "[NAME] RANK",
     .what = "Show where the threads of a worker are",
     .help = "Reads, on the node of this rank, the functions of all Python threads from the memory "
             "of the process, who holds the GIL, and for each thread its state, system call and, "
             "where that may be read, stack in the kernel. The worker is not stopped.",
     .rows = kAsking},
    {.name = "page",
     .words = "[NAME]",
     .what = "Serve a page about a job, and its metrics",
     .help = "Serves a page for a browser until Ctrl-C, and prints its address: nodes and ranks, "
             "what the job waits for, its generations and where the time went. It follows the job "
             "when another node leads, and shows a job that has ended from its ledger. Below it "
             "lie metrics (for Prometheus, with the token as bearer), status.json and "
             "history.json. Nobody sees anything without the token in the address.",
     .rows = kPage},
    {.name = "metrics",
     .words = "[NAME]",
     .what = "Print the metrics of a job for Prometheus",
     .help = "Prints them once, in Prometheus's text format, for the textfile collector of "
             "node_exporter. While the leader does not answer, ddprun_up is 0, and only values "
             "from the ledger are there.",
     .rows = kAsking},
    {.name = "stop",
     .words = "[NAME]",
     .what = "Stop a running job",
     .help = "All workers get the job's stop signal and their time for a last snapshot. The job "
             "ends with code 143 and does not go back into Slurm's queue. With --after-snapshot "
             "they are asked for a snapshot first, while they train, and the stop begins when one "
             "is reported.",
     .rows = kStop},
    {.name = "snapshot",
     .words = "[NAME]",
     .what = "Ask the workers of a running job for a snapshot",
     .help = "The workers continue to train. A program obeys if it looks for the file that "
             "DDPRUN_SNAPSHOT_FILE names; ddpctl status shows when a snapshot is reported.",
     .rows = kAsking},
    {.name = "restart",
     .words = "[NAME]",
     .what = "End the generation that runs; the next one follows",
     .help = "The workers are ended as after a failure on another node: no snapshot is waited for. "
             "No restart is used up.",
     .rows = kAsking},
    {.name = "drain",
     .words = "[NAME] NODE",
     .what = "Take a node out of a running job",
     .help = "The job continues without this host, whose ddprun waits for the end. It is refused "
             "if fewer nodes would be left than the job needs (--nnodes=MIN:MAX).",
     .rows = kAsking},
    {.name = "limits",
     .words = "[NAME]",
     .what = "Set how many nodes and restarts a running job may have",
     .help = "From now on, for the rest of the job, also over requeues; they replace those of "
             "--nnodes and --max-restarts. Limits that are left out stay. The current generation "
             "continues unchanged; after ddpctl restart the next one has the new limits. MIN can "
             "be raised only to as many nodes as are here.",
     .rows = kLimits},
    {.name = "jobs",
     .what = "Show the jobs that run, wait or have ended",
     .help =
         "Shows the jobs that you run on this host, those that wait in Slurm's queue, then those "
         "with a ledger here or in the folder of a job of yours in Slurm: how it ended, its "
         "newest generation, its restarts, the size of its ledger, and when it began and ended. "
         "With --ledger only those of that folder. A job that has recorded no end, and does not "
         "run here, runs elsewhere, waits or was lost: the age of its newest entry is shown.",
     .rows = kJobs},
    {.name = "history",
     .words = "[NAME]",
     .what = "Show the generations of a job, and where its time went",
     .help = "Shows each entry of the job's ledger: when, which generation with how many nodes and "
             "workers, who led, and what made it necessary. Then how much of the time the job "
             "trained, started, restarted and waited. It works after the job, too, and over "
             "requeues. Several jobs: choose one with --ledger=PATH.",
     .rows = kReading},
    {.name = "forget",
     .words = "[NAME...]",
     .what = "Remove ledgers of finished jobs",
     .help = "Removes the ledgers with these names (ddpctl jobs shows them), or those that are "
             "older than --older-than. Only jobs that have recorded their end, without work left, "
             "are removed, and only folders that contain nothing else. Each is named with its "
             "size.",
     .rows = kForget},
};

constexpr ManualRow kCodes[] = {
    {"0", "done"},
    {"1", "there is no such job, node or rank, it has ended, or it was left alone"},
    {"2", "the command line is wrong, or several jobs fit"},
    {"69", "a folder cannot be read or written, or a job or node does not answer"},
    {"77", "the job is another user's, or has another secret or none"},
};
constexpr ManualRow kVariables[] = {
    {"SLURM_JOB_ID", "the job that is meant, with SLURM_STEP_ID, where several have ledgers here"},
    {"NO_COLOR", "if it is set and not empty, nothing is coloured; without it, only on a terminal"},
};
constexpr ManualRow kExamples[] = {
    {"ddpctl status", "the state of the job that was started in this folder"},
    {"ddpctl status 1001_3", "the same of an element of a Slurm array, from any folder"},
    {"ddpctl top", "the same, again and again"},
    {"ddpctl events -f --json", "what happens in it, for programs"},
    {"ddpctl page", "the same in a browser; the address is printed"},
    {"ddpctl logs 3 -f", "what rank 3 prints, over restarts"},
    {"ddpctl stacks 3", "where it is now"},
    {"ddpctl jobs", "the jobs that run, wait in the queue, or have ended"},
    {"ddpctl history --ledger=.ddprun/lab.8812.0", "what happened to that job, and when"},
    {"ddpctl jobs --json --ledger=/shared/ledgers", "the same of another folder, for programs"},
    {"ddpctl forget --older-than=30d --dry-run", "what is old enough to go"},
};
constexpr ManualSection kSections[] = {
    {"Examples", "EXAMPLES", true, kExamples},
    {"Exit codes", "EXIT STATUS", true, kCodes},
    {"Variables", "ENVIRONMENT", true, kVariables},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
    for (const Command& command : kCommands)
        if (command.name == name) return &command;
    return nullptr;
}

std::span<const OptionRow> rows_of_all() { return kForAll; }
std::span<const OptionRow> rows_without_command() { return kWithoutCommand; }
int ctl_exit_code(const Error& error) {
    if (error.code() == ErrorCode::refused) return kNotAllowedCode;
    return error.code() == ErrorCode::not_found ? kNoSuchJobCode : exit_code(error);
}

std::span<const ManualSection> ctl_sections() { return kSections; }

}  // namespace ddprun::launcher
