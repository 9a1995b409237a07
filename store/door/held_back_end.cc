#include "store/door/held_back_end.h"

#include <linux/filter.h>
#include <sys/socket.h>

namespace ddprun::store {

// The filter sees a packet from its TCP header on.
void hold_back_end(int socket) {
    constexpr unsigned kFlags = 13, kFin = 1, kWhole = ~0u;
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlags),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kFin, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, kWhole),
    };
    const sock_fprog filter{4, program};
    (void)::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

void let_end(int socket) {
    const int unused = 0;
    (void)::setsockopt(socket, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
}

}  // namespace ddprun::store
