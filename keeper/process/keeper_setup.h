// Turns a fresh process into a keeper: its own session or group, its name, no signal that could end
// it, no descriptor except its socket. Keeper process only.
#pragma once

#include <span>

namespace ddprun::agent::keeper {

// The descriptor of the socket to ddprun in every keeper.
inline constexpr int kSocket = 3;

// What `ps` and `top` show. `pkill ddprun`, `killall ddprun` and `pkill -f ddprun` must not find
// it: the keeper is there to clean up after a ddprun that was killed.
inline constexpr const char* kName = "job-keeper";

// Replaces the command line of this process by kName, as far as there is room.
void rename_command_line(std::span<char> command_line);

// Returns false when a necessary step failed. Standard error stays open, so that a failed
// DDPRUN_CHECK can print its message.
bool become_keeper(int socket, bool own_session);

}  // namespace ddprun::agent::keeper
