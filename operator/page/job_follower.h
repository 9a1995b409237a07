// Keeps what is known of one job up to date, for as long as the program runs: how it stands, from
// its leader, also over leaders that change; its past, from its ledger every five seconds.
//
// Thread: the loop's. Two threads of its own wait for the network and for the file system, which
// may both hang. The first one ends only with the program, so the program ends by _exit().
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "base/loop/file_thread.h"
#include "operator/ddpctl/ask_job.h"
#include "operator/page/page_view.h"

namespace ddprun::launcher {

class JobFollower {
  public:
    // Called on the loop.
    struct Told {
        std::function<void(PageView::Link, const std::string& why)> link;
        std::function<void(const control::StatusReply&, std::optional<double> steps)> status;
        std::function<void(const FoundJob&, rendezvous::LedgerHistory)> ledger;
    };
    JobFollower(boost::asio::io_context& loop, AskedJob job, Told told);
    ~JobFollower();
    JobFollower(const JobFollower&) = delete;
    JobFollower& operator=(const JobFollower&) = delete;

    // Errors: unavailable (no thread).
    Result<> start();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

// Reads the past of a job again, unless it is known: `newest` is the newest entry that has been
// read, -1: none. Blocks as long as the file system does. Nothing: there is nothing new.
struct LedgerNews {
    FoundJob job;
    rendezvous::LedgerHistory history;
};
std::optional<LedgerNews> read_ledger(const FoundJob& job, std::int64_t newest);

// What an error of asking means for who looks.
PageView::Link link_after(const Error& error, const FoundJob& job);

}  // namespace ddprun::launcher
