// Writes the Python files of the fork server into a job's temporary folder.
#include "warm/bootstrap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/system/unique_fd.h"
#include "base/system/write_all.h"

namespace ddprun::agent::warm {

std::string bootstrap_folder(const std::string& temporary) { return temporary + "/warm"; }

Result<> write_bootstrap(const std::string& temporary) {
    const std::string folder = bootstrap_folder(temporary);
    const auto failed = [](const std::string& path) {
        return Error(ErrorCode::unavailable, path + ": " + std::strerror(errno));
    };
    for (const std::string& each : {folder, folder + "/hooks"})
        if (::mkdir(each.c_str(), 0700) != 0 && errno != EEXIST) return failed(each);
    for (const auto& [name, text] : bootstrap_files()) {
        const std::string path = folder + "/" + std::string(name);
        const UniqueFd file(
            ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (file) errno = write_all(file.get(), text);
        if (file && errno == 0) continue;
        const Error error = failed(path);
        ::unlink(path.c_str());
        return error;
    }
    return {};
}

bool has_bootstrap(const std::string& temporary) {
    const std::string last = bootstrap_folder(temporary) + "/sitecustomize.py";
    return ::access(last.c_str(), R_OK) == 0;
}

void add_bootstrap(std::vector<std::string>& environment, const std::string& folder,
                   const std::vector<std::string>& variables) {
    constexpr std::string_view kPath = "PYTHONPATH=";
    const auto path = std::ranges::find_if(
        environment, [&](const std::string& each) { return each.starts_with(kPath); });
    if (path == environment.end()) {
        environment.push_back(std::string(kPath) + folder);
    } else {
        const std::string old = path->substr(kPath.size());
        // An empty element would be the working directory, while an empty variable means nothing.
        *path = std::string(kPath) + folder + (old.empty() ? "" : ":" + old);
        environment.push_back("DDPRUN_WARM_PYTHONPATH=1");
    }
    environment.insert(environment.end(), variables.begin(), variables.end());
}

}  // namespace ddprun::agent::warm
