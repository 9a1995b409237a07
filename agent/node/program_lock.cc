// Waits, and then locks on another thread.
#include "agent/node/program_lock.h"

#include <chrono>
#include <utility>

#include "base/loop/file_thread.h"
#include "base/system/locked_program.h"

namespace ddprun::agent {
namespace {

constexpr auto kAfter = std::chrono::seconds{2};

}  // namespace

// The handler may run after the end of this object, if it is queued already.
void ProgramLock::later(bool whole) {
    if (std::exchange(begun_, true)) return;
    timer_.expires_after(kAfter);
    timer_.async_wait([&loop = loop_, whole](const boost::system::error_code& error) {
        if (error) return;
        FileThread thread(loop);
        thread.post([whole] {
            lock_program();
            fetch_program();
            whole ? fetch_seldom_used() : let_go_of_seldom_used();
        });
        thread.let_go();
    });
}

}  // namespace ddprun::agent
