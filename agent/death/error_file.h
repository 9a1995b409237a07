// Reads the error file of a worker that has failed, on the file thread: it may lie on a file system
// that hangs, and the loop and its beats must go on. Shell.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/loop/file_thread.h"
#include "base/time.h"

namespace ddprun::agent {

struct ErrorFile {
    bool there = false;
    std::string error;              // the message's last line
    std::string problem;            // what is wrong with it: "error file … is not JSON"
    std::optional<Time> written{};  // on our clock
};

// Blocks as long as the file system does. One that is not there is none, and no problem.
ErrorFile read_error_file(const std::string& path);

// Calls back once, later, from the loop: when it has been read, or when the file system has not
// answered for `patience`.
void read_error_file(FileThread& files, const std::string& path, Duration patience,
                     std::function<void(const ErrorFile&)> done);

}  // namespace ddprun::agent
