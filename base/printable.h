// Text from outside in a line of ours: names and versions that a peer sends, errors of programs,
// answers of Slurm. A terminal obeys escape sequences, and a newline would begin a line that looks
// like ours. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun {

// The text as one line that says the same on every terminal. Control characters, what turns the
// direction of text, and bytes that are no UTF-8 become "\n", "\x1b" or "\u202e". Tabs stay.
// Colours (ESC [ … m) are left out, since many programs print them and they mean nothing here.
std::string printable(std::string_view text);

}  // namespace ddprun
