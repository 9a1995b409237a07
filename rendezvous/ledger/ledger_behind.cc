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
    void not_written(const std::string& sentence);

    boost::asio::io_context& loop;
    const Log log;
    LedgerMemory memory;            // all entries that count as created
    std::unique_ptr<Ledger> found;  // the folder, of which is asked whether it is empty
    std::unique_ptr<Ledger> below;  // the folder; null: not open yet, or never
    bool in_memory = false;         // the folder cannot be opened
    std::deque<Write> waiting;      // for the folder, in their order
    bool writing = false;           // the first of them is being written
    bool said = false;              // that the folder takes nothing
    const std::uint64_t own_mark = random_mark();
};

void LedgerBehind::State::opened(Result<std::unique_ptr<Ledger>> result) {
    if (!result) return stay_in_memory(result.error().sentence());
    found = std::move(*result);
    found->read(EntryNumber{0}, [weak = weak_from_this()](const auto& entries) {
        const auto self = weak.lock();
        if (!self) return;
        if (!entries) return self->stay_in_memory(entries.error().sentence());
        if (!entries->empty())
            return self->stay_in_memory(
                "ledger " + self->found->name() +
                " has entries of an earlier run of this job without an end");
        self->below = std::move(self->found);
        self->write();
    });
}

void LedgerBehind::State::stay_in_memory(const std::string& why) {
    in_memory = true;
    log({Note::Level::warn, why + "; the ledger is in memory instead, so nothing tells this "
                                  "allocation of the job and later ones about each other"});
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
    if (created.outcome == LedgerCreated::Outcome::failed) return not_written(created.sentence);
    // An entry that was lost is one of a newer allocation. The next look finds that.
    said = false;
    const CreateDone done = std::move(waiting.front().done);
    waiting.pop_front();
    if (done) done(std::move(created));
    write();
}

// Whoever waits for an answer gets one, and asks again.
void LedgerBehind::State::not_written(const std::string& sentence) {
    std::deque<Write> kept, asked;
    for (Write& each : waiting) (each.done ? asked : kept).push_back(std::move(each));
    waiting = std::move(kept);
    // Who asks reports it.
    if (asked.empty() && !std::exchange(said, true))
        log({Note::Level::warn, "cannot write the ledger: " + sentence + "; trying again"});
    for (Write& each : asked)
        each.done({LedgerCreated::Outcome::failed, std::move(each.entry), sentence});
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

void LedgerBehind::create(LedgerEntry entry, CreateDone done) {
    if (state_->in_memory) return state_->memory.create(std::move(entry), std::move(done));
    const bool generation = std::holds_alternative<MakesGeneration>(entry.act);
    if (generation) state_->memory.create(entry, std::exchange(done, nullptr));
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

std::string LedgerBehind::name() const {
    return state_->below ? state_->below->name() : state_->memory.name();
}

std::uint64_t LedgerBehind::mark() const {
    return state_->below ? state_->below->mark() : state_->own_mark;
}

std::string LedgerBehind::folder() const { return state_->below ? state_->below->folder() : ""; }

}  // namespace ddprun::rendezvous
