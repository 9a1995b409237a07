// Gives the keyboard to the worker that has waited longest.
#include "keeper/keyboard.h"

#include <algorithm>

namespace ddprun::agent {

// A holder asks again when the shell's `bg` has continued it in the background.
void Keyboard::asks(std::int64_t pid, bool ours) {
    if (holder_ == pid) holder_ = 0;
    if (std::ranges::find(waiting_, pid) == waiting_.end()) waiting_.push_back(pid);
    give(ours);
}

void Keyboard::ended(std::int64_t pid) {
    if (holder_ == pid) holder_ = 0;
    std::erase(waiting_, pid);
}

void Keyboard::looked(bool reads, bool ours) {
    idle_ = reads ? 0 : idle_ + 1;
    if (!ours || idle_ >= kIdleLooks) holder_ = 0;
    give(ours);
}

void Keyboard::give(bool ours) {
    if (!ours || holder_ != 0 || waiting_.empty()) return;
    holder_ = waiting_.front();
    waiting_.erase(waiting_.begin());
    idle_ = 0;
}

}  // namespace ddprun::agent
