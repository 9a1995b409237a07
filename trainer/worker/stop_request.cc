#include "trainer/worker/stop_request.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace ddprun::trainer {
namespace {

std::atomic<bool> told{false};  // a signal handler can reach nothing else

}  // namespace

StopRequest StopRequest::from_environment() {
    const char* file = std::getenv("DDPRUN_STOP_FILE");
    return StopRequest(file ? file : "");
}

StopRequest::StopRequest(std::string file) : file_(std::move(file)) {
    struct sigaction action {};
    action.sa_handler = [](int) { told = true; };
    action.sa_flags = SA_RESTART;
    (void)sigaction(SIGTERM, &action, nullptr);
}

bool StopRequest::asked() {
    if (asked_ || told) return asked_ = true;
    const auto now = std::chrono::steady_clock::now();
    if (file_.empty() || now < look_again_) return false;
    look_again_ = now + std::chrono::milliseconds(100);
    return asked_ = ::access(file_.c_str(), F_OK) == 0;
}

}  // namespace ddprun::trainer
