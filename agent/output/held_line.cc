// Whose turn it is at a console, and what waits behind.
#include "agent/output/held_line.h"

#include <utility>

namespace ddprun::agent {

bool HeldLine::begin(const void* who, Time now) {
    if (is_held()) return false;
    holder_ = who;
    grew_at_ = now;
    return true;
}

std::vector<std::string> HeldLine::end() {
    holder_ = nullptr;
    bytes_behind_ = 0;
    return std::exchange(behind_, {});
}

bool HeldLine::put_behind(std::string bytes) {
    bytes_behind_ += bytes.size();
    behind_.push_back(std::move(bytes));
    return bytes_behind_ >= limit_;
}

}  // namespace ddprun::agent
