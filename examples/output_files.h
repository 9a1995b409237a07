// Files that a worker program writes beside its snapshots: --save and --metrics. Whether they can
// be written is asked before the training, whose work would be lost at its end. Blocking; any
// thread.
//
// Errors: usage, one line with the option, the file, the reason, and what to do.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "trainer/worker/context.h"

namespace example {

// What happens to a file that is there: a new one takes its place, or it gets more lines.
enum class Output { replaced, extended };

// Whether `path` can be written, as far as can be told without writing it. Nothing is asked about
// an empty path.
inline ddprun::Result<void> check_output(const std::string& option, const std::string& path,
                                         Output output) {
    namespace fs = std::filesystem;
    if (path.empty()) return {};
    const auto wrong = [&](const std::string& why) {
        return ddprun::usage_error(option + " " + path + " cannot be written: " + why);
    };
    std::error_code none;
    const auto type = fs::status(path, none).type();
    if (type == fs::file_type::directory) return wrong("it is a folder; name a file in it");
    const bool there = type != fs::file_type::not_found;
    // A device or a pipe can get lines, but must not be replaced by a file.
    if (there && type != fs::file_type::regular && output == Output::replaced)
        return wrong("it is no file; name one");
    const std::string folder = fs::absolute(path, none).parent_path();
    if (there && output == Output::extended) {
        if (::access(path.c_str(), W_OK)) return wrong(std::strerror(errno));
    } else if (::access(folder.c_str(), W_OK | X_OK)) {
        return wrong(folder + ": " + std::strerror(errno) +
                     "; name a file in a folder where you may write");
    }
    return {};
}

// Both files. Rank 0 writes them; all ranks of its node ask, or the others would wait for it.
inline ddprun::Result<void> check_outputs(const ddprun::trainer::Context& context,
                                          const std::string& save, const std::string& metrics) {
    if (context.rank.value != context.local_rank.value) return {};
    if (auto good = check_output("--save", save, Output::replaced); !good) return good;
    return check_output("--metrics", metrics, Output::extended);
}

// Adds a line of figures to the file of --metrics, if there is one. A training does not end for
// them: what fails is a warning of `program`.
inline void add_metrics(const std::string& program, const std::string& path,
                        const std::string& line) {
    if (path.empty()) return;
    std::ofstream file(path, std::ios::app);
    if (file << line << "\n" << std::flush) return;
    std::fprintf(stderr, "%s: warning: the figures of this epoch are not in --metrics %s: %s\n",
                 program.c_str(), path.c_str(), std::strerror(errno));
}

}  // namespace example
