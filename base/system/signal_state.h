// What happens when a signal comes to this process. Thread: any.
#pragma once

#include <signal.h>

namespace ddprun {

// Whether it is ignored. A caller may have done so, as nohup does with SIGHUP.
inline bool is_ignored(int signal) {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// Whether a function is called: it is neither ignored nor does the kernel do what is usual for it.
inline bool has_handler(int signal) {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_DFL &&
           now.sa_handler != SIG_IGN;
}

}  // namespace ddprun
