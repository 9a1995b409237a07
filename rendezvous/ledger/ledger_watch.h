// A ledger that may hang, made into one that answers in time: what has not been answered after
// `limit` is answered as failed ("directory:PATH has not answered for 10 s"), so that whoever asks
// can say so, try again, and give up some day.
//
// What hangs goes on hanging: at most one call is in the ledger below, and those that wait for it
// to come back do so here, each with its own deadline. Such a create may still be done much later;
// its writer meets it then as any entry that stands.
//
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "base/time.h"
#include "rendezvous/ledger/ledger.h"

namespace ddprun::rendezvous {

class LedgerWatch final : public Ledger {
  public:
    LedgerWatch(boost::asio::io_context& loop, std::unique_ptr<Ledger> below, Duration limit);
    ~LedgerWatch() override;

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    std::string name() const override;
    std::uint64_t mark() const override;
    std::string folder() const override;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace ddprun::rendezvous
