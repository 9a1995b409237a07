// Asks the ledger, and repeats a failed read (ledger_calls.h).
#include "rendezvous/service/ledger_calls.h"

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace ddprun::rendezvous {
namespace {

constexpr std::chrono::seconds kReadAgain{1};

}  // namespace

struct LedgerCalls::State : std::enable_shared_from_this<LedgerCalls::State> {
    State(boost::asio::io_context& loop, Ledger& ledger, OnEvent event)
        : ledger(ledger), event(std::move(event)), again(loop) {}

    void read(const ReadLedger& asked);
    void read_done(const ReadLedger& asked, const Result<std::vector<LedgerEntry>>& entries);
    void say(const Event& what) {
        // A copy, since the call may close this.
        if (const OnEvent told = event) told(what);
    }

    Ledger& ledger;
    OnEvent event;  // null: closed
    boost::asio::steady_timer again;
};

void LedgerCalls::State::read(const ReadLedger& asked) {
    ledger.read(asked.from,
                [weak = weak_from_this(), asked](Result<std::vector<LedgerEntry>> entries) {
                    if (const auto self = weak.lock()) self->read_done(asked, entries);
                });
}

void LedgerCalls::State::read_done(const ReadLedger& asked,
                                   const Result<std::vector<LedgerEntry>>& entries) {
    if (entries) return say(LedgerRead{*entries});
    say(LedgerUnread{entries.error().sentence()});
    if (!event) return;
    again.expires_after(kReadAgain);
    again.async_wait([weak = weak_from_this(), asked](boost::system::error_code aborted) {
        const auto self = weak.lock();
        if (self && !aborted) self->read(asked);
    });
}

LedgerCalls::LedgerCalls(boost::asio::io_context& loop, Ledger& ledger, OnEvent event)
    : state_(std::make_shared<State>(loop, ledger, std::move(event))) {}

LedgerCalls::~LedgerCalls() { close(); }

void LedgerCalls::read(const ReadLedger& read) { state_->read(read); }

void LedgerCalls::create(const CreateEntry& create) {
    state_->ledger.create(create.entry, [weak = std::weak_ptr(state_)](LedgerCreated created) {
        if (const auto self = weak.lock()) self->say(created);
    });
}

void LedgerCalls::look(const LookLedger& look) {
    state_->ledger.look(
        look.from, [weak = std::weak_ptr(state_), number = look.number](const Result<int>& newest) {
            if (const auto self = weak.lock())
                self->say(LedgerLooked{number, newest ? std::optional(*newest) : std::nullopt});
        });
}

void LedgerCalls::close() {
    state_->event = nullptr;
    state_->again.cancel();
}

}  // namespace ddprun::rendezvous
