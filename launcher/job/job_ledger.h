// The ledger of a job, as one node opens it: its own when it leads, or that of the leader that it
// follows. Also finds the members of the running job in it.
//
// Thread: the loop's. `loop`, `files` and `plan` must outlive the object.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/loop/file_thread.h"
#include "base/time.h"
#include "launcher/plan/plan.h"
#include "rendezvous/ledger/ledger_followed.h"
#include "rendezvous/ledger/ledger_open.h"
#include "rendezvous/machine/machine_config.h"
#include "rendezvous/model/messages.h"

namespace ddprun::launcher {

// Whether the nodes share a ledger. Only then another node can lead when the first leader is lost.
bool shares_ledger(const Plan& plan);

// A digest of the workers' command. It tells the ledgers of two different commands apart; it
// protects nothing. ddprun's own options are left out, because they may differ from node to node
// and from one submission to the next.
std::string command_digest(const Plan& plan);

class JobLedger {
  public:
    JobLedger(boost::asio::io_context& loop, FileThread& files, const Plan& plan,
              rendezvous::LedgerAccessPointer access, Log log);

    // Begins the ledger, or goes on with that of an earlier run of this job. Where it cannot be
    // opened, the other nodes would wait for the join timeout. So this node leads all the same,
    // with a ledger in memory, and `config` says what for: the whole job, if nobody has asked for
    // the folder and nothing can be in it, or only to tell the others why there is no job. Runs the
    // loop until it is open, so call it before anything else is on the loop. Errors, in a job of
    // one node: those of open_ledger().
    //
    // A job of one node whose ledger nobody has asked for does not wait for it, unless Slurm has
    // started the job before. Where no folder can be made, it has a ledger in memory. A folder that
    // is there, but cannot be used, is an error once Slurm has started the job before.
    //
    // `opened` is called when folder() is known: from within this call, or later for a job of one
    // node. It is not called where the ledger lies in no folder.
    Result<> begin(rendezvous::MachineConfig& config, const std::function<void()>& opened);
    // Whether this node can read the ledger that its leader has named. Only then it may lead later.
    void find(const rendezvous::Welcome& leader, std::function<void(bool)> done);
    // The members of the running job. Asked for when the endpoint does not answer: the host that
    // the user named may be lost while the job goes on under another leader.
    void find_members(std::function<void(std::vector<rendezvous::Peer>)> done);
    // Whether no later run needs the ledger after this end: that of a check, and of a job of one
    // node that has succeeded, unless the user has named the folder or the job was requeued.
    bool is_spent(const rendezvous::Ending& ending) const;
    // Removes the folder if the end of this run is the newest entry in it. If the file system does
    // not answer within `limit`, it stays.
    void remove(Duration limit);

    rendezvous::Ledger& ledger() { return ledger_; }
    std::string folder() const { return ledger_.folder(); }  // empty: in none

  private:
    Result<> open();
    Result<> begin_alone(rendezvous::MachineConfig& config, const std::function<void()>& opened);
    bool is_nothing_there();
    void open_ledger(std::uint64_t mark, Duration limit, rendezvous::LedgerOpened opened);

    boost::asio::io_context& loop_;
    FileThread& files_;
    const Plan& plan_;
    const rendezvous::LedgerAccessPointer access_;
    const Log log_;
    rendezvous::LedgerFollowed ledger_;
};

}  // namespace ddprun::launcher
