// How many guesses a given secret costs, as a power of two. Somebody who takes the leader's port
// gets a proof of each node, and can try guesses against it offline, billions in a second.
//
// An estimate against carelessness; no program can tell whether a text was chosen by chance:
//
// - Each byte counts the bits of the smallest alphabet that has all of them: digits 3.3,
//   hexadecimal 4, base64 6, any bytes 8.
// - Words (letters of one case, or letters with blanks between them) count 2 bits a byte, as
//   English does.
// - A byte that carries on a run (aaaa, 1234, cba) counts nothing, and neither does one that ends
//   three bytes which the text has had already (passwordpassword).
//
// Pure.
#pragma once

#include <string_view>

namespace ddprun::rendezvous {

// 2^80 guesses take the fastest known machines longer than a job lives.
inline constexpr double kLeastGuessBits = 80;

double guess_bits(std::string_view secret);

}  // namespace ddprun::rendezvous
