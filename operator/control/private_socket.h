// The socket on which a job answers the user who has started it, on the host where it leads. It
// needs no secret, no port and no ledger: the kernel reports who calls. It is in a folder that only
// this user can enter, which is the first of these that there is:
//
//   $XDG_RUNTIME_DIR/ddprun, /run/user/UID/ddprun, /tmp/ddprun-UID
//
// Its name is that of the job and its ddprun's process id: "lab.8812.0~4711". It appears when it
// listens, and goes with the job. One that is left by a ddprun that was killed refuses connections,
// and the next job of this user, or ddpctl, removes it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace boost::asio {
class io_context;
}

namespace ddprun::rendezvous {

class PrivateSocket {
  public:
    using Take = std::function<void(UniqueFd caller)>;

    // The socket of a job with this run id. `take` gets each caller that is a process of our own
    // user and has sent something, on the loop. Of those that have not, the newest 16 are kept.
    // `loop` must outlive this object. Blocks as long as a local file system does. Possible errors:
    // unavailable (no such folder, or no descriptor left).
    static Result<std::unique_ptr<PrivateSocket>> open(boost::asio::io_context& loop,
                                                       const std::string& run_id, Take take);
    ~PrivateSocket();
    PrivateSocket(const PrivateSocket&) = delete;
    PrivateSocket& operator=(const PrivateSocket&) = delete;

  private:
    struct State;
    explicit PrivateSocket(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// ---- for ddpctl

struct PrivateJob {
    std::string path;    // of the socket
    std::string name;    // as socket_name() spells the run id
    pid_t process = 0;   // its ddprun
    uid_t user = 0;      // whose it is
    std::string folder;  // where it was started; empty: not known, such as of another user's
};
// The jobs that listen now: ours, or with `all_users` those of all users whose folders can be read.
// Those that killed ones have left in our own folder are removed.
std::vector<PrivateJob> private_jobs(bool all_users = false);

// How a socket's name spells a run id: 48 characters at most, all of them harmless.
std::string socket_name(const std::string& run_id);

// Connects. Possible errors: closed (the job has ended).
Result<UniqueFd> call_private(const std::string& path);

}  // namespace ddprun::rendezvous
