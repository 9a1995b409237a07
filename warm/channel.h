// ddprun's end of the socket to a fork server: packets of words, with descriptors beside them.
//
// To the server:
//   import            payload: keys and values: what to import (WarmStarts::plan())
//   worker            payload: file for the record of imports, numbers of the descriptors, CPUs,
//                     then the environment; descriptors: payload, release, then those of the worker
//   fork ID           the workers since the last fork
// From the server:
//   hello             the bootstrap runs
//   ready N WHY       what may be imported is: so many modules; why the workers import more, or ""
//   again IMPORT WHY  another server must stop before this import
//   cold WHY          no worker may be forked from it
//   forked ID PID …   the workers; the keeper is their parent. They wait for a byte on `release`
//   failed ID ERRNO   no worker runs, nor will
//   stale FILE        answer to fork: this file has changed since it was imported
//
// Words are texts without NUL. A payload is a memory file with a NUL after each text. Thread: the
// loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"

namespace ddprun::agent::warm {

using Words = std::vector<std::string>;

class Channel {
  public:
    // A callback may destroy this object.
    struct Events {
        std::function<void(Words)> words;
        std::function<void()> end;  // the server has gone
    };
    Channel(boost::asio::io_context& io, UniqueFd socket, Events events);
    ~Channel();

    // Descriptors are borrowed. Waits, without blocking, until there is room. Where a descriptor
    // cannot be duplicated, the channel ends.
    void send(const Words& words, const std::vector<int>& fds = {});
    // The same with a payload, whose descriptor comes first.
    void send(const Words& words, const Words& payload, const std::vector<int>& fds);

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::agent::warm
