// Where NCCL's RAS of this node's workers listens: NCCL_RAS_ADDR.
//
// RAS listens on localhost:28028 otherwise, in each process of each job of a host. NCCL lets the
// processes of a user share the port, so a question reaches any of them, also one of another job;
// and where another user's job has it, this one has no RAS. So a job gets a port of its own on each
// of its nodes. Only who asks from outside needs to know it: the processes find each other in
// another way.
//
// The port is bound here, too, without listening: nobody else gets it, and NCCL's processes, which
// are the same user's, may share it (SO_REUSEPORT).
//
// Thread: the loop's.
#pragma once

#include <map>
#include <string>

#include "base/system/unique_fd.h"

namespace ddprun::agent {

class RasPort {
  public:
    using Variables = std::map<std::string, std::string>;
    // `chooses`: gives workers a port unless `user` has set one.
    RasPort(bool chooses, const Variables& user);

    // A generation begins: its workers get the variable, if they are to.
    void begin(Variables& environment);
    // Where it listens.
    const std::string& address() const { return address_; }
    bool is_ours() const { return static_cast<bool>(held_); }

  private:
    void hold();
    bool chooses_;
    std::string address_;
    UniqueFd held_;
};

}  // namespace ddprun::agent
