// Connects the watch for a standstill and the stacks of workers with the machine.
#include "diagnosis/looks/worker_looks.h"

#include <chrono>
#include <numeric>
#include <utility>

#include "agent/host/hardware.h"
#include "agent/output/last_lines.h"
#include "base/system/boot_clock.h"
#include "base/system/careful_open.h"
#include "diagnosis/looks/gpu_question.h"
#include "diagnosis/nccl/ras_client.h"
#include "diagnosis/stacks/fault_dump.h"
#include "diagnosis/standstill/standstill_file.h"

namespace ddprun::agent {
namespace {

// The leader waits for the answer for ten seconds. What is recorded takes five at most, and the
// stacks have what is left of kLooked.
constexpr auto kKeptWithin = std::chrono::seconds{2}, kLooked = std::chrono::seconds{9};
constexpr auto kNcclKept = std::chrono::seconds{4};
constexpr auto kAddedWithin = std::chrono::milliseconds{500};

// Below the line that says in which function the worker is, which is the first one.
void add_gpu(StackLines& stack, const std::string& gpu) {
    if (gpu.empty()) return;
    const bool says_where = !stack.empty() && stack.front().starts_with("in ");
    stack.insert(stack.begin() + (says_where ? 1 : 0), gpu);
}

}  // namespace

WorkerLooks::WorkerLooks(boost::asio::io_context& loop, Calls calls, RecorderOptions recorders,
                         const Variables& user)
    : Diagnosis(std::move(calls)),
      loop_(loop),
      recorders_(loop, recorders, user, calls_.warn),
      ras_port_(recorders.ras_port, user),
      still_(
          loop,
          [this] {
              const WorkerSet* set = calls_.workers();
              return set ? set->watched() : WatchedWorkers();
          },
          [this](Generation generation, std::vector<rendezvous::Still> kinds,
                 rendezvous::Pace pace) {
              calls_.post(WorkersStill{generation, std::move(kinds), pace});
          },
          calls_.unseen),
      keeping_(loop),
      asking_nccl_(loop) {
    still_.tell_collectives(
        [this](Generation generation) { calls_.post(WorkersInCollectives{generation}); });
}

std::function<void(const std::string& temporary)> WorkerLooks::furnish(bool keeps) const {
    return recorders_.furnish(keeps);
}

void WorkerLooks::begin(const std::string& temporary, const std::string& kept,
                        Variables& environment) {
    recorders_.begin(temporary, kept, environment);
    ras_port_.begin(environment);
    still_.ask_nccl_at({ras_port_.address(), interface_addresses, ras_port_.is_ours()});
}

// A thread that hangs in /proc or in a file system is left to itself.
void WorkerLooks::close() {
    still_.close();
    keeping_.let_go();
    asking_nccl_.let_go();
    recorders_.close();
}

// `kept` gets the file, empty if there is none, when all is written: the answer may end the
// workers. A file system that hangs delays it for a moment only.
void WorkerLooks::keep(const WorkerSet& set, std::function<void(const std::string&)> kept) {
    const std::string folder = set.kept_folder();
    if (folder.empty()) return kept({});
    const std::string file = folder + "/" + kStandstillFile;
    std::vector<int> all(set.watched().pids.size());
    std::iota(all.begin(), all.end(), 0);
    write(
        kKeptWithin,
        [file, workers = with_calls(set.living(all))] { return keep_standstill(file, workers); },
        [file, kept = std::move(kept)](bool done) { kept(done ? file : std::string()); });
}

// What NCCL tells people of the whole job, beside the file.
void WorkerLooks::keep_nccl(const WorkerSet& set, std::function<void()> done) {
    const StillWatch::NcclPlace* place = still_.nccl_answers();
    const std::string folder = set.kept_folder();
    if (!place || folder.empty()) return done();
    asking_nccl_.post_within(
        kNcclKept,
        [address = place->address, file = folder + "/nccl_ras.txt"] {
            const Result<std::string> text = ask_ras(address, kNcclKept, RasForm::text);
            if (text) (void)replace_file(file, text.value());
        },
        [done = std::move(done)](bool) { done(); });
}

// What is written before may hang: then nothing is written until it is finished.
void WorkerLooks::write(Duration patience, std::function<Result<>()> work,
                        std::function<void(bool)> done) {
    if (keeps_) return done(false);
    keeps_ = true;
    const auto result = std::make_shared<Result<>>();
    keeping_.post_within(
        patience, [work = std::move(work), result] { *result = work(); },
        [this, patience, result, done = std::move(done)](bool in_time) {
            if (!in_time) say_not_kept("nothing has come back from there for " + to_text(patience));
            if (in_time && !*result) say_not_kept(result->error().sentence());
            done(in_time && result->has_value());
        });
    // Done in its turn, also after what came too late.
    keeping_.post([] {}, [this] { keeps_ = false; });
}

void WorkerLooks::say_not_kept(const std::string& why) {
    if (std::exchange(said_not_kept_, true)) return;
    calls_.warn(std::string("what workers that stand still do cannot be kept in ") +
                kStandstillFile + ": " + why);
}

// A program of the trainer library says itself what it is in; the stack comes after that.
std::vector<rendezvous::WorkerOutcome> WorkerLooks::with_calls(
    std::vector<rendezvous::WorkerOutcome> outcomes) const {
    for (rendezvous::WorkerOutcome& outcome : outcomes) {
        const std::string call = still_.call_of(static_cast<std::size_t>(outcome.local_rank));
        if (!call.empty()) outcome.stack.insert(outcome.stack.begin(), "in " + call);
    }
    return outcomes;
}

void WorkerLooks::examine(const ExamineWorkers& asked) {
    const WorkerSet* set = calls_.workers();
    if (!set) return;
    const auto looked = std::make_shared<Looked>();
    looked->generation = asked.generation;
    looked->asked_at = boot_now();
    // What is recorded, what is kept and where all are, at once: each may take its time.
    const auto part = [this, looked, ranks = asked.local_ranks, alive = std::weak_ptr(alive_)] {
        if (alive.lock() && --looked->missing == 0) look_closely(looked, ranks);
    };
    std::vector<int> all;
    for (const auto& [pid, rank] : set->ranks_by_pid()) all.push_back(rank);
    recorders_.ask(asked.generation, all,
                   [looked, part](std::vector<rendezvous::RecordedCalls> recorded) {
                       looked->recorded = std::move(recorded);
                       part();
                   });
    keep(*set, [looked, part](const std::string& file) {
        looked->file = file;
        part();
    });
    keep_nccl(*set, part);
    still_.look_again(part);
}

// Stacks and GPUs of those that are asked for, at the same time.
void WorkerLooks::look_closely(const std::shared_ptr<Looked>& looked,
                               const std::vector<int>& local_ranks) {
    const WorkerSet* set = calls_.workers();
    if (!set || set->watched().generation != looked->generation) return;
    looked->outcomes = set->living(local_ranks);
    if (looked->outcomes.empty()) return answer(*looked);
    std::vector<std::int64_t> pids;
    for (const rendezvous::WorkerOutcome& outcome : looked->outcomes) pids.push_back(outcome.pid);
    looked->missing = 2;
    const auto part = [this, looked, alive = std::weak_ptr(alive_)] {
        if (alive.lock() && --looked->missing == 0) answer(*looked);
    };
    const Duration left = looked->asked_at + kLooked - boot_now();
    stacks_of(loop_, pids, left, [looked, part](std::vector<FoundStack> stacks) {
        looked->stacks = std::move(stacks);
        part();
    });
    gpus_in_use(loop_, pids, left, [looked, part](std::vector<std::string> gpus) {
        looked->gpus = std::move(gpus);
        part();
    });
}

void WorkerLooks::look(int index, std::int64_t pid, std::function<void(Lines)> done) {
    look_without_tools(loop_, pid,
                       [this, index, pid, done = std::move(done),
                        alive = std::weak_ptr(alive_)](StackLines lines) {
                           if (!alive.lock()) return;
                           // It may have ended, and another generation may have begun.
                           const std::string call = still_.call_of(static_cast<std::size_t>(index));
                           const WorkerSet* set = calls_.workers();
                           if (!call.empty() && set && set->ranks_by_pid().contains(pid))
                               lines.insert(lines.begin(), "in " + call);
                           if (const std::string nccl = still_.nccl_sentence(); !nccl.empty())
                               lines.push_back("NCCL: " + nccl);
                           done(std::move(lines));
                       });
}

// All comes in one event.
void WorkerLooks::answer(Looked& looked) {
    WorkersExamined event{looked.generation, std::move(looked.outcomes),
                          std::move(looked.recorded)};
    StackLines more;
    for (std::size_t i = 0; i < event.outcomes.size(); ++i) {
        rendezvous::WorkerOutcome& outcome = event.outcomes[i];
        const FoundStack& found = looked.stacks[i];
        outcome.stack = found.lines;
        event.unread.insert(event.unread.end(), found.unread.begin(), found.unread.end());
        if (found.native.empty() && looked.gpus[i].empty()) continue;
        more.push_back("rank " + std::to_string(outcome.rank) +
                       (looked.gpus[i].empty() ? "" : ", " + looked.gpus[i]));
        for (const std::string& line : found.native) more.push_back("    " + line);
    }
    event.outcomes = with_calls(std::move(event.outcomes));
    for (std::size_t i = 0; i < event.outcomes.size(); ++i)
        add_gpu(event.outcomes[i].stack, looked.gpus[i]);
    const std::string nccl = still_.nccl_sentence();
    if (!nccl.empty() && !event.outcomes.empty())
        event.outcomes.front().stack.push_back("NCCL: " + nccl);
    if (!looked.file.empty())
        for (rendezvous::WorkerOutcome& outcome : event.outcomes)
            outcome.stack.push_back("all workers of its node: " + looked.file);
    const auto post = [this, event, alive = std::weak_ptr(alive_)](bool) {
        if (alive.lock()) calls_.post(event);
    };
    if (looked.file.empty() || more.empty()) return post(true);
    write(
        kAddedWithin, [file = looked.file, more] { return keep_lines(file, more); }, post);
}

StackLines take_last_words(std::vector<std::string>& lines) {
    FaultDump dump = fault_dump(lines);
    lines = std::move(dump.before);
    if (lines.size() > LastLines::kCount)
        lines.erase(lines.begin(), lines.end() - static_cast<long>(LastLines::kCount));
    return dump_lines(dump);
}

}  // namespace ddprun::agent
