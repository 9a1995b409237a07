// The names in a folder. /tmp may have thousands, and each entry of std::filesystem costs the parts
// of a whole path.
//
// Thread: any. It waits for the file system.
#pragma once

#include <dirent.h>

#include <memory>
#include <string>
#include <string_view>

namespace ddprun {

// Calls each(name), in no order, without "." and "..". It stops at the first error; nothing for a
// folder that cannot be read.
template <class Each>
void for_each_name(const std::string& folder, Each each) {
    const auto close = [](DIR* open) { ::closedir(open); };
    const std::unique_ptr<DIR, decltype(close)> open(::opendir(folder.c_str()));
    while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") each(name);
    }
}

}  // namespace ddprun
