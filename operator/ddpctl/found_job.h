// A job as its ledger tells of it, or where it can be asked if nobody can read its ledger, and
// which of several jobs is meant. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "rendezvous/ledger_format/ledger_access.h"
#include "rendezvous/model/model.h"

namespace ddprun::launcher {

struct FoundJob {
    std::string name;        // of the folder: "lab.8812.0"
    std::string path;        // of the folder, or of what it is instead, as the user would write it
    std::uint64_t mark = 0;  // of the ledger; 0: none has begun
    std::optional<rendezvous::LedgerEntry> newest = {};
    std::string fault = {};  // why the ledger cannot be read; empty: it can
    std::string owner = {};  // another user, whose job it is; empty: it is ours
    std::int64_t bytes = 0;
    Duration begun{}, written{};  // since 1970: the ledger, its newest entry; 0: there is none
    // A ledger in etcd: "etcd:HOST:PORT", and what opens it; empty: in a folder, or in none.
    std::string etcd = {};
    rendezvous::LedgerAccessPointer access = {};
    // Nobody else can read its ledger: where it is asked; empty and 0: its ledger tells.
    std::string host = {};
    std::uint16_t port = 0;
    std::string run_id = {};
    // It runs on this host and answers there (private_socket.h); empty: not known to.
    std::string socket = {};
    std::int64_t process = 0;  // that answers there
    bool only_socket = false;  // nothing else is known of it
    bool queued = false;       // it waits in Slurm's queue
    bool has_ledger() const { return port == 0 && !only_socket; }
    bool is_in_folder() const { return has_ledger() && etcd.empty(); }
};

// Whether the job is in the output of `squeue -h --me -t SUSPENDED -o %A`: ids, one in each line.
bool is_among(const FoundJob& job, std::string_view ids);

// What a folder can prove of a job.
enum class JobState {
    running,  // its ddprun answers on this host
    queued,   // Slurm starts it again
    succeeded,
    failed,      // its end is recorded, and it was neither a success nor a stop
    stopped,     // by a signal or a time limit: Slurm may start it again, and it goes on
    no_end,      // runs, waits or was lost
    no_entry,    // has begun a ledger, and no generation yet
    no_ledger,   // its ledger is in the memory of its leader, or of ddprun-rendezvous
    unreadable,  // the ledger has a fault, or the folder belongs to somebody else
};
JobState state_of(const FoundJob& job);
const char* to_string(JobState state);  // as JSON has it: "no_end"

// Whether another job with the same name has set this ledger aside, so it is over whatever it says.
bool is_set_aside(const FoundJob& job);

// Whether a ledger's name is this word or has it as a whole part: "8812" and "8812.0" are parts of
// "lab.8812.0".
bool is_called(const FoundJob& job, const std::string& word);

// The job and step of Slurm that ddpctl itself runs in; empty: in none.
struct SlurmNames {
    std::string job, step;
};
enum class Wanted {
    any,
    may_run,  // if several fit: without those that have recorded their end
};
// The one job that is meant: that of the step, that of the job, else the only one there is.
// `folder`: where they were found. Possible errors: not_found; usage (several fit; the sentence
// names them and says how to choose).
Result<FoundJob> choose_job(const std::vector<FoundJob>& jobs, const SlurmNames& slurm,
                            const std::string& folder, Wanted wanted = Wanted::any);

}  // namespace ddprun::launcher
