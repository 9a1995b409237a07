// The ledger of a job of one node whose folder is written behind it. The job's first start needs
// nothing of an earlier allocation, so it waits for no file system: the first generation counts as
// created at once, and its entry goes to the folder while the workers start. Only who comes later
// reads it, an allocation after a requeue (PROTOCOL.md, rule 26).
//
// Every later entry counts as created when the folder has it, in its order. An entry that the
// folder does not take is tried again at the next call, and said once. If the folder cannot be
// opened, or has entries of this or an earlier allocation already, the ledger stays in memory, and
// a line says so. If a newer allocation has written there, each later create loses to its entry.
//
// A create waits for as long as the folder is not open: put a LedgerWatch around it.
//
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "rendezvous/ledger/ledger.h"

namespace ddprun::rendezvous {

class LedgerBehind final : public Ledger {
  public:
    // Opens the folder.
    using Open = std::function<void(LedgerOpened opened)>;

    LedgerBehind(boost::asio::io_context& loop, const Open& open, Log log);
    ~LedgerBehind() override;

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    // Possible errors besides those of the folder: unavailable (it is not open yet).
    void look(EntryNumber from, LookDone done) override;
    std::string name() const override;
    // Before the folder is open, a number of its own: the ledger lasts, but nobody else reads it.
    std::uint64_t mark() const override;
    std::string folder() const override;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace ddprun::rendezvous
