// The commands of ddpctl that ask the node of one rank: what its worker prints, and where it is.
// The job's leader says which generation there is, the ledger where its nodes are; the rest comes
// from that node itself.
//
// Thread: blocks its caller. Possible errors: those of ask_job.h; not_found, there is no such rank.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "operator/ddpctl/ctl_call.h"

namespace ddprun::launcher {

struct LogSink {
    // `print` says whether the reader is still there. `say` is for ddpctl's own sentences, which
    // are not among the worker's text.
    std::function<bool(const std::string& text)> print;
    std::function<void(const std::string& sentence)> say;
    bool is_terminal = false;
};

// Gives each piece of text to the sink. With --follow until the job has ended or the reader is
// gone, over all generations.
Result<> ask_logs(const CtlCall& call, const LogSink& sink);

// Returns what is to be printed.
Result<std::string> ask_stacks(const CtlCall& call);

}  // namespace ddprun::launcher
