// Binds a port of loopback that others of the same user may bind, too.
#include "diagnosis/nccl/ras_port.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "diagnosis/nccl/ras_address.h"

namespace ddprun::agent {
namespace {

constexpr const char* kRasVariable = "NCCL_RAS_ADDR";

}  // namespace
RasPort::RasPort(bool chooses, const Variables& user) : chooses_(chooses), address_(kRasByDefault) {
    const auto set = user.find(kRasVariable);
    if (set == user.end()) return;
    address_ = set->second;
    chooses_ = false;
}

void RasPort::begin(Variables& environment) {
    if (!chooses_) return;
    if (!held_) hold();
    if (held_) environment[kRasVariable] = address_;
}

// Where there is no port, workers have RAS's own.
void RasPort::hold() {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0 ||
        ::bind(socket.get(), any, size) != 0 || ::getsockname(socket.get(), any, &size) != 0)
        return;
    held_ = std::move(socket);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

}  // namespace ddprun::agent
