// One descriptor that may be slow to take bytes, and how it can be written without ever waiting.
//
// The descriptor may be shared with other processes, so its O_NONBLOCK is left alone: a pipe or
// terminal is opened anew through /proc (an open file description of our own), a socket is written
// with MSG_DONTWAIT; where neither can be done, no more than PIPE_BUF is written after poll has
// said that there is room. With a regular file none of that helps: a thread of its own has to write
// it. Thread: any one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/loop/file_thread.h"
#include "base/system/unique_fd.h"
#include "base/time.h"

namespace ddprun::agent {

class OutputTarget {
  public:
    explicit OutputTarget(int fd);         // borrowed, and duplicated
    explicit OutputTarget(UniqueFd file);  // a file of ours

    bool is_file() const { return kind_ == Kind::file; }
    int number() const { return fd_.get(); }
    // As write(2); EAGAIN when there is no room. Not for files.
    ssize_t write_some(const char* bytes, std::size_t size);
    // For files: writes all, waiting as long as that takes; each write counts as progress. Returns
    // errno, or 0. What did not fit is dropped.
    int write_all(const std::vector<std::string>& pieces, const FileThread::Progress& progress);
    bool wait_for_room(Duration limit) const;

  private:
    enum class Kind {
        file,    // write(2) waits for no reader, but may for its file system; also /dev/null
        own,     // a description of our own, with O_NONBLOCK
        socket,  // MSG_DONTWAIT
        shared,  // poll, then no more than PIPE_BUF
    };

    UniqueFd fd_;
    Kind kind_;
};

// Whether two descriptors lead to the same place: `> log 2>&1`.
bool same_target(int one, int other);

}  // namespace ddprun::agent
