// Opens configuration files, and checks who can have written the site's.
#include "launcher/options/config_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/system/small_file.h"
#include "base/system/unique_fd.h"

namespace ddprun::launcher {
namespace {

// All options with long values are a few KiB. A larger file is the wrong file.
constexpr std::size_t kMost = 1 << 20;

enum class Trust { any, root };  // who may have written the file

// Looks at the open descriptor and not at the path: a path could be exchanged meanwhile. Possible
// errors: not_found, refused, unavailable. The sentence does not contain the path.
Result<std::string> read_file(const std::string& path, Trust trust) {
    // O_NONBLOCK: the name may belong to a FIFO, and open() would wait for a writer.
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0)
        return Error(
            errno == ENOENT || errno == ENOTDIR ? ErrorCode::not_found : ErrorCode::unavailable,
            ::strerror(errno));
    if (!S_ISREG(status.st_mode)) return Error(ErrorCode::refused, "it is not a file");
    if (trust == Trust::root && status.st_uid != 0)
        return Error(ErrorCode::refused,
                     "it belongs to user " + std::to_string(status.st_uid) + ", not to root");
    if (trust == Trust::root && (status.st_mode & (S_IWGRP | S_IWOTH)))
        return Error(ErrorCode::refused, "others than root can write it; chmod go-w " + path);
    std::string text = read_bounded(file.get(), kMost + 1);
    if (text.size() > kMost)
        return Error(ErrorCode::refused, "it has more than " + std::to_string(kMost) +
                                             " bytes, which is no list of "
                                             "options");
    return text;
}

}  // namespace

Result<ConfigFiles> read_config_files(const std::vector<std::string>& words,
                                      const Environment& environment, bool with_site) {
    ConfigFiles files;
    const auto site = environment.find("DDPRUN_SITE_CONFIG");
    const bool without = site != environment.end() && !site->second.empty();
    if (without && site->second != "none")
        return usage_error("DDPRUN_SITE_CONFIG=" + site->second +
                           ": none is the only value; --config names a file of your own");
    if (with_site && !without) {
        auto text = read_file(kSiteConfig, Trust::root);
        if (text)
            files.site = {kSiteConfig, std::move(*text)};
        else if (text.error().code() != ErrorCode::not_found)
            files.warnings.push_back(std::string("the site's file ") + kSiteConfig +
                                     " is ignored: " + text.error().sentence());
    }
    const std::string path = config_named(words, environment);
    if (path.empty()) return files;
    auto text = read_file(path, Trust::any);
    if (!text)
        return usage_error("--config: " + path + ": " + text.error().sentence() +
                           "; the path is from the working directory of each node");
    files.own = {path, std::move(*text)};
    return files;
}

}  // namespace ddprun::launcher
