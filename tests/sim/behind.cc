// Brings calls to LedgerBehind, and its calls to the virtual ledger (behind.h).
#include "tests/sim/behind.h"

#include <utility>

namespace ddprun::sim {
namespace {

using rendezvous::LedgerCreated;
using rendezvous::LedgerEntry;
using rendezvous::LedgerLooked;

// The virtual ledger as LedgerBehind sees it.
class Folder final : public rendezvous::Ledger {
  public:
    Folder(VirtualLedger& folder, int host, Behind::Deliver deliver)
        : folder_(folder), host_(host), deliver_(std::move(deliver)) {}

    void read(EntryNumber, ReadDone done) override {
        done(Error(ErrorCode::internal, "nobody asks for it"));
    }
    void create(LedgerEntry entry, CreateDone done) override {
        folder_.create(host_, entry, [this, entry, done](const rendezvous::Event& answer) {
            LedgerCreated created = std::get<LedgerCreated>(answer);
            // A real folder knows a writer's own entry.
            if (created.outcome == LedgerCreated::Outcome::lost)
                created = rendezvous::created(entry, created.entry);
            deliver_([done, created] { done(created); });
        });
    }
    void look(EntryNumber from, LookDone done) override {
        folder_.look(host_, {0, from}, [this, done](const rendezvous::Event& answer) {
            deliver_([done, newest = std::get<LedgerLooked>(answer).newest] {
                if (newest) return done(*newest);
                done(Error(ErrorCode::unavailable, "the file system is away"));
            });
        });
    }
    std::string name() const override { return "ledger"; }

  private:
    VirtualLedger& folder_;
    const int host_;
    const Behind::Deliver deliver_;
};

}  // namespace

Behind::Behind(VirtualLedger& folder, int host, Clock& clock, Duration lease, Deliver deliver,
               Log log)
    : folder_(folder),
      host_(host),
      clock_(clock),
      lease_(lease),
      deliver_(std::move(deliver)),
      ledger_(
          loop_, [this](rendezvous::LedgerOpened done) { opened_ = std::move(done); },
          std::move(log)) {}

void Behind::open() {
    opened_(
        std::unique_ptr<rendezvous::Ledger>(std::make_unique<Folder>(folder_, host_, deliver_)));
    turn();
}

// What LedgerBehind posts comes later, as on a real loop.
void Behind::turn() {
    clock_.after({}, [this] {
        deliver_([this] {
            loop_.restart();
            loop_.poll();
        });
    });
}

VirtualLedger::Answer Behind::within_a_lease(VirtualLedger::Answer answer, rendezvous::Event late) {
    const auto open = std::make_shared<bool>(true);
    const auto once = [open, answer = std::move(answer)](const rendezvous::Event& event) {
        if (std::exchange(*open, false)) answer(event);
    };
    clock_.after(lease_, [once, late = std::move(late)] { once(late); });
    return once;
}

void Behind::read(EntryNumber from, const VirtualLedger::Answer& answer) {
    ledger_.read(from, [answer](const auto& entries) {
        if (entries) answer(rendezvous::LedgerRead{*entries});
    });
    turn();
}

void Behind::look(const rendezvous::LookLedger& look, const VirtualLedger::Answer& answer) {
    const auto once = within_a_lease(answer, LedgerLooked{look.number, std::nullopt});
    ledger_.look(look.from, [once, number = look.number](const Result<int>& newest) {
        once(LedgerLooked{number, newest ? std::optional(*newest) : std::nullopt});
    });
    turn();
}

void Behind::create(LedgerEntry entry, const VirtualLedger::Answer& answer) {
    if (entry.number == EntryNumber{0} && entry.makes_generation()) first_ = entry;
    const auto once = within_a_lease(
        answer, LedgerCreated{LedgerCreated::Outcome::failed, entry, "it has not answered"});
    ledger_.create(std::move(entry), [once](const LedgerCreated& created) { once(created); });
    turn();
}

}  // namespace ddprun::sim
