// What a living process has open: for the report of a job that hangs, and to find its connections.
//
// Thread: one of its own, since /proc may let nobody read it for a while.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnosis/stacks/kernel_stack.h"
#include "diagnosis/stacks/tcp_sockets.h"

namespace ddprun::agent {

// The TCP sockets of a process among these. Empty where /proc does not show its descriptors.
std::vector<TcpSocket> sockets_of(std::int64_t pid, const TcpSockets& sockets);

// "10.0.0.5:4711 to 10.0.0.7:3456; 192 bytes not read; 13124 bytes not acknowledged, sent 5 times
// again".
std::string socket_text(const TcpSocket& socket);

// A line for each descriptor: "4: /data/train.bin, at byte 81920", "7: TCP 10.0.0.5:4711 to …".
StackLines open_files(std::int64_t pid, const TcpSockets& sockets);

}  // namespace ddprun::agent
