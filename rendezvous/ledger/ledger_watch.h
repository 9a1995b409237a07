// Wraps a ledger that may hang, so that every call is answered in time: after `limit` it fails
// ("directory:PATH has not answered for 10 s"). The caller can then report it, try again, and give
// up one day.
//
// A call that hangs goes on hanging. At most one call is in the wrapped ledger; the others wait
// here, each with its own deadline. A create that hangs may still be carried out much later; its
// writer then finds it like any other entry.
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
    void look(EntryNumber from, LookDone done) override;
    std::string name() const override;
    std::uint64_t mark() const override;
    std::string folder() const override;
    bool follows_end() const override;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace ddprun::rendezvous
