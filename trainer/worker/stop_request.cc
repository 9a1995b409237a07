// Notices SIGTERM and the stop file.
#include "trainer/worker/stop_request.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace ddprun::trainer {
namespace {

// Global, because a signal handler cannot reach an object. Set by the handler, never reset.
std::atomic<bool> told{false};

}  // namespace

StopRequest StopRequest::from_environment() {
    const char* file = std::getenv("DDPRUN_STOP_FILE");
    return StopRequest(file ? file : "");
}

StopRequest::StopRequest(std::string file) : file_(std::move(file)) {
    struct sigaction action {};
    action.sa_handler = [](int) { told = true; };
    // System calls of the program go on after the signal and do not fail with EINTR.
    action.sa_flags = SA_RESTART;
    (void)sigaction(SIGTERM, &action, nullptr);
}

bool StopRequest::asked() {
    if (asked_ || told) return asked_ = true;
    const auto now = std::chrono::steady_clock::now();
    // A look at the file costs a system call, and on a network file system perhaps a message.
    if (file_.empty() || now < look_again_) return false;
    look_again_ = now + std::chrono::milliseconds(100);
    // Only whether the file exists counts here; its content is for the user's program.
    return asked_ = ::access(file_.c_str(), F_OK) == 0;
}

}  // namespace ddprun::trainer
