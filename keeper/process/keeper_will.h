// The keeper's will: what ddprun has told it to do when ddprun is gone and no process of the job is
// left on this node. Keeper process only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "keeper/between/keeper_protocol.h"
#include "keeper/killing/left_sockets.h"

namespace ddprun::agent::keeper {

// Filled by requests, executed once at the end.
class Will {
  public:
    // `folders`: what set_folder() replaces.
    explicit Will(std::vector<std::string> folders) : folders_(std::move(folders)) {}
    // Each call replaces what the same function was told before. An incomplete request counts as
    // "nothing".
    void prepare(const Request& request, std::vector<UniqueFd>& fds);
    void set_folder(const Request& request, std::vector<UniqueFd>& fds);

    // Call before the processes of the job are killed. What they leave is removed by execute().
    void see_sockets();

    // Writes the Gone frame to the link, closes the listening socket, then removes the folder and
    // the sockets that the job left. The order matters: others wait for the frame, and a file
    // system may hang. It waits at most 2 s for a link whose buffer is full.
    void execute();

  private:
    void write_frame();

    std::vector<char> frame_;
    UniqueFd link_, listener_;
    std::vector<std::string> folders_;
    UniqueFd folder_lock_;  // of the only one; until this process ends
    LeftSockets left_sockets_;
};

}  // namespace ddprun::agent::keeper
