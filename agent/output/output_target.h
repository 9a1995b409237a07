// Writes to one descriptor that may be slow, without ever waiting for it.
//
// Other processes may share the descriptor, so its O_NONBLOCK must not be changed. Instead, a pipe
// or terminal is opened again through /proc, which gives an open file description of our own. A
// socket is written with MSG_DONTWAIT. Where neither is possible, at most PIPE_BUF bytes are
// written after poll has reported room. None of this helps with a regular file: it must be written
// on a thread of its own.
//
// Thread: any, one at a time.
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
    explicit OutputTarget(UniqueFd file);  // a file that this object owns

    bool is_file() const { return kind_ == Kind::file; }
    bool is_terminal() const { return is_terminal_; }
    int number() const { return fd_.get(); }
    // Like write(2); fails with EAGAIN when there is no room. Not for files.
    ssize_t write_some(const char* bytes, std::size_t size);
    // For files: writes everything, however long it takes. Each write increments `progress`.
    // Returns 0 or errno; after an error the rest is dropped.
    int write_all(const std::vector<std::string>& pieces, const FileThread::Progress& progress);
    // Blocks until there is room or `limit` has passed. Returns whether there is room.
    bool wait_for_room(Duration limit) const;

  private:
    enum class Kind {
        file,    // never waits for a reader, but maybe for a file system; also /dev/null
        own,     // an open file description of our own, with O_NONBLOCK
        socket,  // written with MSG_DONTWAIT
        shared,  // poll first, then write at most PIPE_BUF
    };

    UniqueFd fd_;
    Kind kind_;
    bool is_terminal_ = false;
};

// Whether two descriptors lead to the same place, as after `> log 2>&1`.
bool same_target(int one, int other);

}  // namespace ddprun::agent
