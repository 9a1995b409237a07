// Answers from memory and writes to the folder behind (ledger_behind.h).
#include "rendezvous/ledger/ledger_behind.h"

#include <boost/asio/post.hpp>
#include <deque>
#include <utility>

#include "base/system/random_bytes.h"
#include "rendezvous/ledger/ledger_memory.h"

namespace ddprun::rendezvous {

struct LedgerBehind::State : std::enable_shared_from_this<LedgerBehind::State> {
    struct Write {
        LedgerEntry entry;
        CreateDone done;  // null: it has been answered
    };

    State(boost::asio::io_context& l, Log n) : loop(l), log(std::move(n)), memory(l) {}

    void opened(Result<std::unique_ptr<Ledger>> result);
    void stay_in_memory(const std::string& why);
    void write();
    void written(LedgerCreated created);
    void not_written(const LedgerCreated& created);
    const Ledger& used() const {
        if (below && !in_memory) return *below;
        return memory;
    }

    boost::asio::io_context& loop;
    const Log log;
    LedgerMemory memory;            // all entries that count as created
    std::unique_ptr<Ledger> below;  // the folder; null: not open yet, or never
    bool in_memory = false;         // for good: the folder is not used
    std::deque<Write> waiting;      // for the folder, in their order
    bool writing = false;           // the first of them is being written
    bool said = false;              // that the folder takes nothing
    const std::uint64_t own_mark = random_mark();
};

void LedgerBehind::State::opened(Result<std::unique_ptr<Ledger>> result) {
    if (!result) return stay_in_memory(result.error().sentence());
    below = std::move(*result);
    write();
}

void LedgerBehind::State::stay_in_memory(const std::string& why) {
    in_memory = true;
    log(in_memory_instead(why));
    for (Write& each : std::exchange(waiting, {}))
        if (each.done) memory.create(std::move(each.entry), std::move(each.done));
}

void LedgerBehind::State::write() {
    if (!below || writing || waiting.empty()) return;
    writing = true;
    below->create(waiting.front().entry, [weak = weak_from_this()](LedgerCreated created) {
        if (const auto self = weak.lock()) self->written(std::move(created));
    });
}

void LedgerBehind::State::written(LedgerCreated created) {
    writing = false;
    const LedgerEntry& wanted = waiting.front().entry;
    const bool lost = created.outcome == LedgerCreated::Outcome::lost;
    // The folder was not empty. A newer allocation may have begun before it was open here.
    if (lost && wanted.number == EntryNumber{0} && created.entry.leader != wanted.leader &&
        created.entry.requeue <= wanted.requeue)
        return stay_in_memory("ledger " + below->name() +
                              " has entries of an earlier run of this job without an end");
    if (created.outcome == LedgerCreated::Outcome::failed || (lost && !waiting.front().done))
        return not_written(created);
    said = false;
    const CreateDone done = std::move(waiting.front().done);
    waiting.pop_front();
    if (done) memory.create(created.entry, [](const LedgerCreated&) {});
    if (done) done(std::move(created));
    write();
}

// The first entry stays. Whoever waits behind it gets this answer, and asks again: his entry would
// stand behind one that does not exist, or that a newer allocation has written.
void LedgerBehind::State::not_written(const LedgerCreated& created) {
    std::deque<Write> kept, asked;
    for (Write& each : waiting) (each.done ? asked : kept).push_back(std::move(each));
    waiting = std::move(kept);
    const bool failed = created.outcome == LedgerCreated::Outcome::failed;
    // Who asks reports it.
    if (failed && asked.empty() && !std::exchange(said, true))
        log({Note::Level::warn, "cannot write the ledger: " + created.sentence + "; trying again"});
    for (Write& each : asked)
        each.done(
            {created.outcome, failed ? std::move(each.entry) : created.entry, created.sentence});
}

LedgerBehind::LedgerBehind(boost::asio::io_context& loop, const Open& open, Log log)
    : state_(std::make_shared<State>(loop, std::move(log))) {
    open([weak = std::weak_ptr(state_)](Result<std::unique_ptr<Ledger>> result) {
        if (const auto state = weak.lock()) state->opened(std::move(result));
    });
}

LedgerBehind::~LedgerBehind() = default;

void LedgerBehind::read(EntryNumber from, ReadDone done) {
    state_->memory.read(from, std::move(done));
}

// Only the entry 0 is answered before the folder has it. A later generation must lose to an entry
// of a newer allocation: between two generations nobody looks for one.
void LedgerBehind::create(LedgerEntry entry, CreateDone done) {
    if (state_->in_memory) return state_->memory.create(std::move(entry), std::move(done));
    if (entry.number == EntryNumber{0} && entry.makes_generation())
        state_->memory.create(entry, std::exchange(done, nullptr));
    state_->waiting.push_back({std::move(entry), std::move(done)});
    state_->write();
}

void LedgerBehind::look(EntryNumber from, LookDone done) {
    if (state_->in_memory) return state_->memory.look(from, std::move(done));
    if (!state_->below)
        return boost::asio::post(state_->loop, [weak = std::weak_ptr(state_), done] {
            if (!weak.expired())
                done(Error(ErrorCode::unavailable, "the ledger's folder is not open yet"));
        });
    state_->write();
    state_->below->look(from, std::move(done));
}

std::string LedgerBehind::name() const { return state_->used().name(); }

std::uint64_t LedgerBehind::mark() const {
    const std::uint64_t found = state_->used().mark();
    return found != 0 ? found : state_->own_mark;
}

std::string LedgerBehind::folder() const { return state_->used().folder(); }

}  // namespace ddprun::rendezvous
