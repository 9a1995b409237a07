// Turns a fresh process into a keeper: its own session or group, its name, no signal that could end
// it, no descriptor except its socket. Keeper process only.
#pragma once

namespace ddprun::agent::keeper {

// The descriptor of the socket to ddprun in every keeper.
inline constexpr int kSocket = 3;

// Returns false when a necessary step failed. Standard error stays open, so that a failed
// DDPRUN_CHECK can print its message.
bool become_keeper(int socket, bool own_session);

}  // namespace ddprun::agent::keeper
