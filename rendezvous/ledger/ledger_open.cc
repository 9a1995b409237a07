// Chooses the kind of ledger, and puts a time limit on folders.
#include "rendezvous/ledger/ledger_open.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "rendezvous/ledger/ledger_directory.h"
#include "rendezvous/ledger/ledger_etcd.h"
#include "rendezvous/ledger/ledger_folder.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/ledger/ledger_watch.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using Kind = LedgerPlace::Kind;

namespace {

// One answer, from the ledger or from the timer, whichever comes first.
class OpeningInTime {
  public:
    OpeningInTime(asio::io_context& loop, LedgerOpened done)
        : timer_(loop), done_(std::move(done)) {}
    void answer(Result<std::unique_ptr<Ledger>> result) {
        timer_.cancel();
        if (const auto done = std::exchange(done_, nullptr)) done(std::move(result));
    }
    // Calls `then` after this time unless the answer has come.
    template <class Then>
    static void after(const std::shared_ptr<OpeningInTime>& self, Duration time, Then then) {
        self->timer_.expires_after(time);
        self->timer_.async_wait([self, then](const boost::system::error_code& aborted) {
            if (!aborted && self->done_) then();
        });
    }

  private:
    asio::steady_timer timer_;
    LedgerOpened done_;
};

void open_directory(const LedgerShell& shell, const LedgerPlace& place, LedgerOwner owner,
                    LedgerLimits limits, LedgerOpened opened) {
    const auto opening = std::make_shared<OpeningInTime>(shell.loop, std::move(opened));
    const auto silent = "ledger folder " + place.path + " has not answered for ";
    // Two timers in a row: first the warning, then the end.
    OpeningInTime::after(opening, limits.mention, [=, log = shell.log] {
        log({Note::Level::warn,
             silent + ddprun::to_text(limits.mention) + "; still waiting for its file system"});
        OpeningInTime::after(opening, limits.opening - limits.mention, [=] {
            opening->answer(
                Error(ErrorCode::timed_out, silent + ddprun::to_text(limits.opening) +
                                                "; choose another with --ledger=directory:PATH"));
        });
    });
    open_ledger_directory(
        place.path, std::move(owner), shell.files, shell.log,
        [opening, &loop = shell.loop, limits](Result<std::unique_ptr<Ledger>> ledger) {
            // A folder that opened in time may still hang later, so a LedgerWatch goes around it.
            if (!ledger) return opening->answer(ledger.error());
            opening->answer(std::unique_ptr<Ledger>(
                std::make_unique<LedgerWatch>(loop, std::move(*ledger), limits.call)));
        });
}

}  // namespace

void open_ledger(LedgerShell shell, LedgerPlace place, LedgerOwner owner, LedgerLimits limits,
                 LedgerOpened opened) {
    if (place.kind == Kind::directory)
        return open_directory(shell, place, std::move(owner), limits, std::move(opened));
    if (place.kind == Kind::etcd)
        return open_ledger_etcd(shell.loop, std::move(place), std::move(shell.access),
                                std::move(owner), std::move(shell.log), std::move(opened));
    asio::post(shell.loop, [&loop = shell.loop, opened = std::move(opened), mark = owner.mark] {
        // Nobody can follow a ledger in the memory of another process.
        if (mark) return opened(Error(ErrorCode::not_found, "this node has --ledger=memory"));
        opened(std::unique_ptr<Ledger>(std::make_unique<LedgerMemory>(loop)));
    });
}

Result<LedgerClaim> read_claim(const LedgerPlace& place, LedgerAccessPointer access) {
    if (place.kind == Kind::directory) return read_claim(place.path);
    if (place.kind == Kind::etcd) return read_etcd_claim(place, std::move(access));
    return Error(ErrorCode::not_found, "a ledger in memory is in its leader's process");
}

}  // namespace ddprun::rendezvous
