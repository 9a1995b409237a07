// How a process would take a signal, and which children it has, as /proc shows it.
//
// Thread: any. It waits for nothing but /proc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "agent/workers/signal_targets.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

class SignalLook {
  public:
    explicit SignalLook(int signal) : signal_(signal) {}

    SignalTargets targets(std::int64_t worker);
    // Sends the signal to one of them. Its number may belong to another one by
    // now; that one does not get it (on a kernel without pidfds it does).
    void send(std::int64_t pid);

  private:
    std::optional<SeenProcess> look(std::int64_t pid);

    int signal_;
    std::map<std::int64_t, UniqueFd> pidfds_;  // from before the first look
};

}  // namespace ddprun::agent
