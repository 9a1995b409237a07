// Reads the error file of a worker that has failed. The file may be on a file system that hangs, so
// the second function reads it on the file thread, while the loop and its heartbeats continue.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/loop/file_thread.h"
#include "base/time.h"

namespace ddprun::agent {

// What was found.
struct ErrorFile {
    bool there = false;             // the file exists
    std::string error;              // last line of its message
    int exit_code = 1;              // with which the worker was about to end
    std::string problem;            // what is wrong with it: "error file … is not JSON"
    std::optional<Time> written{};  // when it was written, on our clock
};

// Blocks as long as the file system does. A missing file is no problem; `there` is false then.
ErrorFile read_error_file(const std::string& path);

// Calls back once from the loop, never within the call: when the file has been read, or when the
// file system has not answered for `patience`.
void read_error_file(FileThread& files, const std::string& path, Duration patience,
                     std::function<void(const ErrorFile&)> done);

}  // namespace ddprun::agent
