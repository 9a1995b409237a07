// HMAC-SHA-256, and the bytes that go into it. All proofs and seals that are made with the job's
// secret are made here (identity.h, ledger_format/ledger_seal.h).
//
// Pure. OpenSSL's own errors mean a broken build, so they end the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddprun::rendezvous {

inline constexpr std::size_t kMacSize = 32;  // bytes

// The MAC of `head` and `rest`, one after the other, without copying a large text. `key` must not
// be empty: anybody could compute the MAC.
std::string hmac(std::string_view key, std::string_view head, std::string_view rest = {});

// The same for the job's secret as key, of which no copy stays in OpenSSL's memory.
std::string hmac_of_secret(std::string_view secret, std::string_view text);

// Eight bytes, big endian: the same on every host.
std::string mac_number(std::uint64_t value);

// A text with its length in front, so that two lists of fields never give the same bytes.
std::string mac_field(std::string_view text);

// Compares in constant time; a usual comparison would tell by its duration how many bytes are
// right.
bool same_mac(std::string_view a, std::string_view b);

}  // namespace ddprun::rendezvous
