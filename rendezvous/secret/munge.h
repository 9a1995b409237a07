// MUNGE by its programs: a secret in a credential that only this user can decode, on any host that
// shares munged's key. `munge` and `unmunge` are looked up in PATH.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::rendezvous {

// The credential with `secret` in it, restricted to us. Errors: unavailable, timed_out.
boost::asio::awaitable<Result<std::string>> munge(std::string secret);

// What a credential holds, if it was made by us. One that is used again, or expired, still counts:
// it is the secret that proves, not the age of its envelope. Errors: refused (another user's, for
// another user, another key), unavailable, timed_out.
boost::asio::awaitable<Result<std::string>> unmunge(std::string credential);

// The payload in what `unmunge --numeric --keys=STATUS,UID` prints, if its maker is `uid`. Pure.
Result<std::string> read_unmunged(std::string_view output, int exit_code, uid_t uid);

// Which user `uid` of this user namespace is outside of it, where munged runs; from the text of
// /proc/self/uid_map. Pure.
uid_t outside_uid(std::string_view uid_map, uid_t uid);

}  // namespace ddprun::rendezvous
