// What makes a fresh process a keeper: its session, its name, no signal that could end it, no
// descriptor but its socket. Keeper process only.
#pragma once

namespace ddprun::agent::keeper {

inline constexpr int kSocket = 3;  // where the socket to ddprun lies from then on

// False: something that the keeper cannot do without failed. Standard error stays open, for the
// last words of a failed check.
bool become_keeper(int socket, bool own_session);

}  // namespace ddprun::agent::keeper
