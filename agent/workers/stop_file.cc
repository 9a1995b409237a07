// Writes the stop file.
#include "agent/workers/stop_file.h"

#include <cstdio>
#include <fstream>

namespace ddprun::agent {

// Writes a second file and renames it. rename() replaces the name in one step, so a reader never
// sees half a file.
bool write_stop_file(const std::string& path, const std::string& text) {
    const std::string unfinished = path + ".part";
    std::ofstream file(unfinished, std::ios::trunc);
    file << text << std::flush;
    // A failed close() sets the stream's error state, which is checked next.
    file.close();
    if (file && std::rename(unfinished.c_str(), path.c_str()) == 0) return true;
    std::remove(unfinished.c_str());
    return false;
}

}  // namespace ddprun::agent
