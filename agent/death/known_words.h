// Words in a worker's last lines that say more than its exit code does, and what to do about them.
// Pure.
#pragma once

#include <string>
#include <vector>

namespace ddprun::agent {

// "a file system is full: see df -h and df -i", for a message or last lines that say "No space left
// on device"; empty where nothing is known. The last line that says anything counts.
std::string known_words(const std::string& error, const std::vector<std::string>& tail);

}  // namespace ddprun::agent
