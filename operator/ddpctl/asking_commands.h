// The commands of ddpctl that ask a running job: what each one asks, and what it prints.
//
// Thread: blocks its caller. Possible errors: those of ask_job.h.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/error.h"
#include "operator/ddpctl/ctl_call.h"

namespace ddprun::launcher {

// What is to be printed, and the exit code: 69 while nobody leads.
struct Looked {
    std::string text;
    int code = 0;
};
Result<Looked> ask_status(const CtlCall& call);
Result<Looked> ask_why(const CtlCall& call);

// Each returns what is to be printed.
// Asks the person at the terminal, and returns whether the answer is yes; empty: there is none.
using AskUser = std::function<bool(const std::string& question)>;
// A job that waits in Slurm's queue is cancelled, if the user wants that (--yes).
Result<std::string> ask_stop(const CtlCall& call, const AskUser& user);
Result<std::string> ask_snapshot(const CtlCall& call);
Result<std::string> ask_restart(const CtlCall& call);
Result<std::string> ask_drain(const CtlCall& call);
Result<std::string> ask_limits(const CtlCall& call);

// Gives a table again and again to `print`, until the job has ended or the reader is gone. `rows`:
// how many lines the reader sees at once; 0: as many as there are.
Result<> ask_top(const CtlCall& call, const std::function<std::size_t()>& rows,
                 const std::function<bool(const std::string&)>& print);

// Gives each piece of text to `print`, which says whether the reader is still there. Without
// --follow only how the job stands now.
Result<> ask_events(const CtlCall& call, const std::function<bool(const std::string&)>& print);

}  // namespace ddprun::launcher
