// The keeper's will: what ddprun told it to do when ddprun is gone and no process of the job is
// left on this node. Keeper process only.
#pragma once

#include <string>
#include <vector>

#include "agent/keeper/keeper_protocol.h"
#include "agent/keeper/left_sockets.h"

namespace ddprun::agent::keeper {

class Will {
  public:
    // Both replace what was said before; a request that is not whole counts as "nothing".
    void prepare(const Request& request, std::vector<UniqueFd>& fds);
    void set_folder(const Request& request, const std::vector<UniqueFd>& fds);

    // Writes the Gone frame on the link, lets go of the listening socket, and removes the folder
    // and what sockets the job has left: in this order, for a file system may hang and others wait
    // for the word. Waits no longer than 2 s for a link whose buffer is full.
    void execute();

  private:
    void write_frame();

    std::vector<char> frame_;
    UniqueFd link_, listener_;
    std::string folder_;
    LeftSockets left_sockets_;
};

}  // namespace ddprun::agent::keeper
