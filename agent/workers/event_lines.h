// The lines that one worker gets on DDPRUN_EVENTS_FD, and what becomes of those that it does not
// read: they are dropped and counted, and the next line that has room follows after their number,
// {"event":"lost","lost":3}. A worker that has closed its end gets nothing more. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddprun::agent {

class EventLines {
  public:
    // How a text was taken, as a whole or not at all.
    enum class Taken { all, no_room, closed };

    // `send` is called once at most, with whole lines: Taken(std::string_view).
    template <class Send>
    void push(std::string_view line, const Send& send) {
        if (closed_) return;
        std::string text;
        if (lost_ > 0) text = R"({"event":"lost","lost":)" + std::to_string(lost_) + "}\n";
        (text += line) += '\n';
        const Taken taken = send(std::string_view(text));
        closed_ = taken == Taken::closed;
        lost_ = taken == Taken::no_room ? lost_ + 1 : 0;
    }
    bool closed() const { return closed_; }

  private:
    std::int64_t lost_ = 0;
    bool closed_ = false;
};

}  // namespace ddprun::agent
