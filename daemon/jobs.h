// The jobs that meet at a rendezvous outside of them. Each run id has one Service with a ledger of
// its own, from the first node that calls with this id until the job has ended and all nodes know
// it.
//
//   accepted ─▶ Gate ─admitted─▶ Hello of an unknown run ─▶ opening its ledger ─▶ serving ─▶ ended:
//                                     more nodes wait ───────────▲            logged, forgotten;
//                                                                            the id is free again
//
// Nothing that a caller says before its proof begins or changes a job: one gate stands before all
// of them (gate.h).
//
// An operator asks one of the jobs, by its run id; where there is only one, he need not name it.
//
// A job's limits are those of its first Hello; nodes with other limits are logged. There are at
// most kMostJobs jobs. Jobs that never began, and to which nobody is connected, make room for
// others and begin anew with the next node of their run id.
//
// Thread: the loop's. `files` must outlive this object.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/loop/file_thread.h"
#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger_format/ledger_access.h"
#include "rendezvous/ledger_format/ledger_place.h"
#include "rendezvous/secret/secret.h"
#include "rendezvous/service/gate.h"
#include "rendezvous/service/service.h"

namespace ddprun::rendezvous {

class Jobs {
  public:
    using Socket = boost::asio::ip::tcp::socket;
    static constexpr std::size_t kMostJobs = 1024;

    // `ledger` is the place for all runs; each run has its own part of it (of_job() in
    // ledger_place.h). `secrets` must outlive this object; it is the same for all jobs.
    // `access` is for a ledger in etcd, else null.
    Jobs(boost::asio::io_context& loop, FileThread& files, Secrets& secrets, LedgerPlace ledger,
         LedgerAccessPointer access, std::string version, Log log);
    ~Jobs();  // cuts all connections
    Jobs(const Jobs&) = delete;
    Jobs& operator=(const Jobs&) = delete;

    // A new connection; nothing may have been read from it.
    void take(Socket socket) { gate_.take(std::move(socket)); }

    std::vector<std::string> run_ids() const;
    std::size_t connections() const;  // of nodes, in all jobs and at the gate

  private:
    struct Job;

    void came(std::shared_ptr<Link> link, ToLeader first);
    void operator_came(std::shared_ptr<Link> link, ToLeader first);
    std::string why_no_run(const std::string& run_id) const;
    Job* begin(const Hello& hello);
    void opened(const std::string& run_id, std::uint64_t number,
                Result<std::unique_ptr<Ledger>> ledger);
    void ended(const std::string& run_id, const Ending& ending);
    void make_room();
    MachineConfig machine_config(const Hello& hello) const;
    Log log_of(const std::string& run_id) const;

    boost::asio::io_context& loop_;
    FileThread& files_;
    Secrets& secrets_;
    LedgerPlace ledger_;
    LedgerAccessPointer access_;
    std::string version_;
    Log log_;
    std::map<std::string, std::unique_ptr<Job>> jobs_;  // by run id
    std::uint64_t last_ = 0;                            // the number of the newest job
    Gate gate_;
    // Expires with this object; callbacks then do nothing.
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::rendezvous
