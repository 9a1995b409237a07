// What the keeper process tells ddprun, and the queue of what does not fit into the socket yet.
// Keeper process only.
#pragma once

#include <sys/types.h>

#include <deque>

#include "base/time.h"
#include "keeper/between/keeper_protocol.h"
#include "keeper/killing/killing.h"

namespace ddprun::agent::keeper {

// Each function adds one reply; keeper_protocol.h says what it means. They go out with flush(), in
// the order in which they were added.
class Replies {
  public:
    // `socket` is borrowed.
    explicit Replies(int socket) : socket_(socket) {}

    void forked(std::uint32_t id, pid_t pid, UniqueFd pidfd);
    void failed(std::uint32_t id, Stage stage, int error);
    void exited(pid_t pid, int wait_status, Time at);
    void stopped(pid_t pid, int signal);
    // Once only while the first waits, as the kernel has it: a flood of signals fills no memory.
    void signalled(int signal);
    void swept(std::uint32_t id, const LeftRunning& left);
    void waits(const LeftRunning& left);
    void passed();
    void expired();
    void works();
    void survivor(const Survivor& found);

    // Sends what fits. If something is left, call it again when the socket has room.
    void flush();
    bool empty() const { return waiting_.empty(); }
    // Nobody reads replies any more: drops those that wait, and all that will be added.
    void agent_is_gone();

  private:
    struct Waiting {
        Reply reply;
        UniqueFd pidfd;
    };
    void add(const Reply& reply, UniqueFd pidfd = {});

    int socket_;
    bool gone_ = false;
    std::deque<Waiting> waiting_;
};

}  // namespace ddprun::agent::keeper
