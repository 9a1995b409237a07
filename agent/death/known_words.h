// Recognizes well-known error texts in a worker's last lines, and says what to do. Pure.
#pragma once

#include <string>
#include <vector>

namespace ddprun::agent {

// For "No space left on device" it returns "a file system is full: see df -h and df -i …". `error`
// (the message of the error file) is searched first, then the lines from the last to the first.
// Returns an empty text when nothing is known.
std::string known_words(const std::string& error, const std::vector<std::string>& tail);

}  // namespace ddprun::agent
