// A queue in front of a ledger, with a timer for each call.
#include "rendezvous/ledger/ledger_watch.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <utility>

namespace ddprun::rendezvous {

namespace asio = boost::asio;

struct LedgerWatch::State : std::enable_shared_from_this<LedgerWatch::State> {
    // One call. It is answered once, by the ledger or by its timer. `ask` passes it to the wrapped
    // ledger.
    struct Call {
        std::function<void(Call&, std::function<void()> next)> ask;
        std::function<void(const std::string& sentence)> fail;  // null: it has been answered
        asio::steady_timer timer;
    };

    State(asio::io_context& l, std::unique_ptr<Ledger> b, Duration d)
        : loop(l), below(std::move(b)), limit(d) {}

    // Passes one call on to the wrapped ledger. `late` makes the answer if the timer is first.
    template <class Answer>
    void forward(std::function<void(std::function<void(Answer)>)> pass_on,
                 std::function<void(Answer)> done,
                 std::function<Answer(const std::string& why)> late);
    void post(decltype(Call::ask) ask, decltype(Call::fail) fail);
    void next();
    std::string late() const {
        return below->name() + " has not answered for " + ddprun::to_text(limit);
    }

    asio::io_context& loop;
    std::unique_ptr<Ledger> below;
    const Duration limit;
    std::deque<std::shared_ptr<Call>> waiting;
    std::shared_ptr<Call> asked;  // the call that is in the wrapped ledger
};

void LedgerWatch::State::post(decltype(Call::ask) ask, decltype(Call::fail) fail) {
    const auto call = std::make_shared<Call>(
        Call{std::move(ask), std::move(fail), asio::steady_timer(loop, limit)});
    call->timer.async_wait(
        [weak = weak_from_this(), call](const boost::system::error_code& aborted) {
            const auto self = weak.lock();
            if (!self || aborted || !call->fail) return;
            // A call that is still queued is never asked. One that was asked stays in `asked` until
            // the ledger returns.
            std::erase(self->waiting, call);
            std::exchange(call->fail, nullptr)(self->late());
        });
    waiting.push_back(call);
    next();
}

// The queue goes on only when the wrapped ledger has returned: a second call would hang as well.
void LedgerWatch::State::next() {
    if (asked || waiting.empty()) return;
    const auto call = asked = waiting.front();
    waiting.pop_front();
    call->ask(*call, [weak = weak_from_this(), call] {
        call->timer.cancel();
        const auto self = weak.lock();
        if (!self) return;
        self->asked.reset();
        self->next();
    });
}

template <class Answer>
void LedgerWatch::State::forward(std::function<void(std::function<void(Answer)>)> pass_on,
                                 std::function<void(Answer)> done,
                                 std::function<Answer(const std::string& why)> late) {
    const auto ask = [pass_on = std::move(pass_on), done](Call& call, std::function<void()> next) {
        pass_on([&call, done, next = std::move(next)](Answer answer) {
            // False: the timer has answered this call already.
            const bool awaited = std::exchange(call.fail, nullptr) != nullptr;
            next();
            if (awaited) done(std::move(answer));
        });
    };
    post(ask, [done, late = std::move(late)](const std::string& why) { done(late(why)); });
}

LedgerWatch::LedgerWatch(asio::io_context& loop, std::unique_ptr<Ledger> below, Duration limit)
    : state_(std::make_shared<State>(loop, std::move(below), limit)) {}

LedgerWatch::~LedgerWatch() {
    if (state_->asked) state_->asked->timer.cancel();
    for (const auto& call : state_->waiting) call->timer.cancel();
}

void LedgerWatch::read(EntryNumber from, ReadDone done) {
    using Entries = Result<std::vector<LedgerEntry>>;
    state_->forward<Entries>(
        [this, from](auto answer) { state_->below->read(from, std::move(answer)); },
        std::move(done), [](const std::string& why) { return Error(ErrorCode::timed_out, why); });
}

void LedgerWatch::create(LedgerEntry entry, CreateDone done) {
    state_->forward<LedgerCreated>(
        [this, entry](auto answer) { state_->below->create(entry, std::move(answer)); },
        std::move(done),
        [entry](const std::string& why) {
            return LedgerCreated{LedgerCreated::Outcome::failed, entry, why};
        });
}

void LedgerWatch::look(EntryNumber from, LookDone done) {
    state_->forward<Result<int>>(
        [this, from](auto answer) { state_->below->look(from, std::move(answer)); },
        std::move(done), [](const std::string& why) { return Error(ErrorCode::timed_out, why); });
}

std::string LedgerWatch::name() const { return state_->below->name(); }
std::uint64_t LedgerWatch::mark() const { return state_->below->mark(); }

std::string LedgerWatch::folder() const { return state_->below->folder(); }
bool LedgerWatch::follows_end() const { return state_->below->follows_end(); }

}  // namespace ddprun::rendezvous
