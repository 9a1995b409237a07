#include "agent/workers/stop_file.h"

#include <cstdio>
#include <fstream>

namespace ddprun::agent {

bool write_stop_file(const std::string& path, const std::string& text) {
    const std::string unfinished = path + ".part";
    std::ofstream file(unfinished, std::ios::trunc);
    file << text << std::flush;
    file.close();
    if (file && std::rename(unfinished.c_str(), path.c_str()) == 0) return true;
    std::remove(unfinished.c_str());
    return false;
}

}  // namespace ddprun::agent
