// MUNGE by its programs `munge` and `unmunge`, looked up in PATH. It wraps a secret into a
// credential that only this user can decode, on any host whose munged has the same key.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/system/secret_text.h"

namespace ddprun::rendezvous {

// Returns a credential with `secret` in it, which only we can decode. Possible errors: unavailable,
// timed_out.
boost::asio::awaitable<Result<std::string>> munge(SecretText secret);

// Returns the content of a credential if we made it. A credential that was decoded before, or has
// expired, still counts: the secret in it is the proof, not the age of its envelope. Possible
// errors: refused (made by another user, for another user, with another key), unavailable,
// timed_out.
boost::asio::awaitable<Result<SecretText>> unmunge(std::string credential);

// The payload in the output of `unmunge --numeric --keys=STATUS,UID`, if user `uid` made it. Pure.
// Possible errors: as of unmunge().
Result<std::string> read_unmunged(std::string_view output, int exit_code, uid_t uid);

// The id outside of this user namespace of user `uid` inside of it; munged runs outside. `uid_map`
// is the text of /proc/self/uid_map. Pure.
uid_t outside_uid(std::string_view uid_map, uid_t uid);

}  // namespace ddprun::rendezvous
