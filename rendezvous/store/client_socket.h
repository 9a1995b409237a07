// A TCP connection on which every act has a deadline: connect, send all, receive exactly.
//
// Blocks the calling thread, for trainers have no loop; one thread at a time. Moves, does not copy;
// closes itself. Errors: unavailable (nobody there, name unknown), timed_out, closed. After an
// error of send or receive the stream is at an unknown place and of no more use. Sentences say what
// happened; who the peer is, the caller adds.
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
    // lookup itself is the C library's and keeps its own time.
    static Result<ClientSocket> connect(const std::string& host, std::uint16_t port,
                                        Deadline deadline);

    ClientSocket(ClientSocket&& other) noexcept;
    ClientSocket& operator=(ClientSocket&& other) noexcept;
    ~ClientSocket();

    Result<> send(std::string_view bytes, Deadline deadline);
    Result<> receive(char* into, std::size_t count, Deadline deadline);
    // At least one byte, and what else is there.
    Result<std::size_t> receive_some(char* into, std::size_t room, Deadline deadline);

  private:
    explicit ClientSocket(int fd) : fd_(fd) {}
    Result<> wait_for(short events, Deadline deadline);

    int fd_ = -1;
};

}  // namespace ddprun::store
