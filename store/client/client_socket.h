// A TCP connection with a deadline for every operation: connect, send everything, receive.
//
// Blocks the calling thread, because trainers have no event loop. One thread at a time. Can be
// moved, not copied; closes itself.
//
// Possible errors: unavailable (nobody there, unknown name), timed_out, closed. After an error of
// send or receive nobody knows how much was transferred, so the connection is of no more use. The
// sentences say what happened; the caller adds who the peer is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::store {

using Deadline = std::chrono::steady_clock::time_point;

class ClientSocket {
  public:
    // Tries each address of the name once, each with its share of the time that is left. The name
    // lookup is the C library's; the deadline does not bound it.
    static Result<ClientSocket> connect(const std::string& host, std::uint16_t port,
                                        Deadline deadline);

    ClientSocket(ClientSocket&& other) noexcept;
    ClientSocket& operator=(ClientSocket&& other) noexcept;
    ~ClientSocket();

    // Sends all bytes.
    Result<> send(std::string_view bytes, Deadline deadline);
    // Receives exactly `count` bytes.
    Result<> receive(char* into, std::size_t count, Deadline deadline);
    // Receives at least one byte, and as many more as are there.
    Result<std::size_t> receive_some(char* into, std::size_t room, Deadline deadline);

  private:
    explicit ClientSocket(int fd) : fd_(fd) {}
    Result<> wait_for(short events, Deadline deadline);

    int fd_ = -1;
};

}  // namespace ddprun::store
