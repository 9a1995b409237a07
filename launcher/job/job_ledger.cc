// Opens, finds and removes the ledger of a job.
#include "launcher/job/job_ledger.h"

#include <filesystem>
#include <memory>
#include <optional>

#include "base/hexadecimal.h"
#include "rendezvous/ledger/ledger_behind.h"
#include "rendezvous/ledger/ledger_contents.h"
#include "rendezvous/ledger/ledger_members.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/ledger/ledger_watch.h"

namespace ddprun::launcher {
namespace {

// For reading the leader's ledger, before this node joins.
constexpr auto kLookLimit = std::chrono::seconds{10};

}  // namespace

bool shares_ledger(const Plan& plan) {
    return plan.limits.max_nodes > 1 && is_shared(plan.ledger.place);
}

// FNV-1a, 64 bit: small, and the same on every platform. A NUL after each word keeps {"ab"} and
// {"a", "b"} apart.
std::string command_digest(const Plan& plan) {
    std::uint64_t hash = 14695981039346656037u;
    const auto add = [&hash](char c) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    };
    for (const std::string& word : plan.workers.argv) {
        for (const char c : word) add(c);
        add('\0');
    }
    return hexadecimal(hash);
}

JobLedger::JobLedger(boost::asio::io_context& loop, FileThread& files, const Plan& plan,
                     rendezvous::LedgerAccessPointer access, Log log)
    : loop_(loop),
      files_(files),
      plan_(plan),
      access_(std::move(access)),
      log_(std::move(log)),
      ledger_(loop, [this](std::uint64_t mark, rendezvous::LedgerOpened opened) {
          open_ledger(mark, kLookLimit, std::move(opened));
      }) {}

// `mark` names the ledger of the leader to follow; 0 means to begin a ledger, or to go on with the
// one of an earlier run of this job.
void JobLedger::open_ledger(std::uint64_t mark, Duration limit, rendezvous::LedgerOpened opened) {
    rendezvous::open_ledger({loop_, files_, log_, access_}, plan_.ledger.place,
                            {command_digest(plan_), plan_.slurm_restart_count, mark},
                            {.call = plan_.limits.times.lease, .opening = limit},
                            std::move(opened));
}

Result<> JobLedger::open() {
    std::optional<Result<std::unique_ptr<rendezvous::Ledger>>> opened;
    open_ledger(
        0, plan_.limits.times.join_timeout,
        [&](Result<std::unique_ptr<rendezvous::Ledger>> result) { opened = std::move(result); });
    while (!opened) {
        // An io_context that has run out of work stops, and must be restarted before it runs again.
        if (loop_.stopped()) loop_.restart();
        loop_.run_one();
    }
    if (!*opened) {
        // A file system that hangs would otherwise keep the loop, and so this process, from ending.
        if (opened->error().code() == ErrorCode::timed_out) files_.abandon();
        return opened->error();
    }
    ledger_.adopt(std::move(**opened));
    return {};
}

Result<> JobLedger::begin(rendezvous::MachineConfig& config, const std::function<void()>& opened) {
    if (plan_.limits.max_nodes == 1 && !plan_.ledger.chosen && is_shared(plan_.ledger.place))
        return begin_alone(config, opened);
    const auto open_now = open();
    if (open_now && !folder().empty()) opened();
    if (open_now || plan_.limits.max_nodes == 1) return open_now;
    const std::string why = open_now.error().sentence();
    ledger_.adopt(std::make_unique<rendezvous::LedgerMemory>(loop_));
    config.succession = false;
    if (plan_.ledger.chosen || plan_.slurm_restart_count > 0)
        config.refusal = "node " + plan_.node_name + " cannot open the ledger: " + why;
    else
        log_({Note::Level::warn, why + "; the ledger is in memory instead, so the loss of this "
                                       "node or a requeue loses the job's history"});
    return {};
}

// Whether no ledger of the job lies where its folder would be.
bool JobLedger::is_nothing_there() {
    const auto nothing = std::make_shared<bool>(false);
    files_.post([nothing, folder = plan_.ledger.place.path] {
        std::error_code ignored;
        *nothing = std::filesystem::status(folder, ignored).type() ==
                   std::filesystem::file_type::not_found;
    });
    return files_.drain(kLookLimit) && *nothing;
}

// Nothing that is in a folder can concern the first allocation of a job.
Result<> JobLedger::begin_alone(rendezvous::MachineConfig& config,
                                const std::function<void()>& opened) {
    if (plan_.slurm_restart_count == 0) {
        const auto open_behind = [this, opened](rendezvous::LedgerOpened done) {
            open_ledger(0, plan_.limits.times.join_timeout,
                        [opened, done = std::move(done)](auto ledger) {
                            const bool is_open = ledger.has_value();
                            done(std::move(ledger));
                            if (is_open) opened();
                        });
        };
        ledger_.adopt(std::make_unique<rendezvous::LedgerWatch>(
            loop_, std::make_unique<rendezvous::LedgerBehind>(loop_, open_behind, log_),
            plan_.limits.times.lease));
        return {};
    }
    const auto open_now = open();
    config.earlier_unrecorded = open_now && !ledger_.follows_end();
    if (open_now) opened();
    if (open_now) return open_now;
    const Error& why = open_now.error();
    // Where no folder can be made, an earlier allocation had none either.
    if (why.code() == ErrorCode::unavailable && is_nothing_there()) {
        ledger_.adopt(std::make_unique<rendezvous::LedgerMemory>(loop_));
        log_(rendezvous::in_memory_instead(why.sentence()));
        return {};
    }
    return Error(why.code(),
                 why.sentence() + "; an earlier allocation of this job may still train");
}

void JobLedger::find(const rendezvous::Welcome& leader, std::function<void(bool)> done) {
    ledger_.find(leader.ledger_mark,
                 [this, name = leader.ledger, done = std::move(done)](const Result<>& found) {
                     if (!found)
                         log_({Note::Level::info, "cannot read the leader's ledger, " + name +
                                                      ": " + found.error().sentence()});
                     done(found.has_value());
                 });
}

void JobLedger::find_members(std::function<void(std::vector<rendezvous::Peer>)> done) {
    rendezvous::find_members(
        {loop_, files_, [](const Note&) {}, access_}, plan_.ledger.place,
        {command_digest(plan_), plan_.slurm_restart_count, 0},
        {.call = plan_.limits.times.lease, .opening = plan_.limits.times.lease}, std::move(done));
}

// A requeued script may run ddprun again, and that run needs the proof that this one has ended.
bool JobLedger::is_spent(const rendezvous::Ending& ending) const {
    return plan_.check ||
           (plan_.limits.max_nodes == 1 && !plan_.ledger.chosen && plan_.slurm_restart_count == 0 &&
            ending.verdict == rendezvous::Verdict::succeeded);
}

void JobLedger::remove(Duration limit) {
    if (folder().empty()) return;
    files_.post([folder = std::filesystem::path(folder()), mark = ledger_.mark(),
                 restart = plan_.slurm_restart_count, made = !plan_.ledger.chosen] {
        if (!rendezvous::remove_ended_ledger(folder.string(), mark, restart)) return;
        std::error_code ignored;
        // Only if it is empty.
        if (made) std::filesystem::remove(folder.parent_path(), ignored);
    });
    files_.drain(limit);
}

}  // namespace ddprun::launcher
