// The commands of ddpctl that show a job to a browser and to Prometheus: page and metrics.
//
// Thread: blocks its caller. Possible errors: those of ask_job.h, and unavailable (the address
// cannot be listened on).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "operator/ddpctl/ctl_call.h"

namespace ddprun::launcher {

// Serves the page until SIGINT or SIGTERM, and ends the process then. It returns only if it cannot
// begin. Gives what a person has to know, such as the URL, to `print`, once it listens.
Error serve_page(const CtlCall& call, std::string_view version,
                 const std::function<bool(const std::string&)>& print);

// What is to be printed. A job whose leader does not answer has metrics, too.
Result<std::string> ask_metrics(const CtlCall& call, std::string_view version);

// --listen=ADDRESS:PORT. Possible errors: usage.
struct ListenAt {
    std::string address = "127.0.0.1";  // an IP address
    int port = 0;                       // 0: a free one
    bool is_loopback = true;
};
Result<ListenAt> read_listen(const std::string& text);

}  // namespace ddprun::launcher
