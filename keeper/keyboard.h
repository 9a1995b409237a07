// Which of several workers at one terminal has the keyboard. Pure.
//
// The kernel stops a process group in the background that reads the terminal (SIGTTIN) or changes
// its mode (SIGTTOU). So a worker asks by reading. It is brought to the foreground, and has the
// keyboard while it reads. Others that ask meanwhile stay stopped, in the order in which they
// asked. When it has not read for a while, the next one gets the keyboard, else ddprun: Ctrl-C is
// for the job again.
#pragma once

#include <cstdint>
#include <vector>

namespace ddprun::agent {

class Keyboard {
  public:
    // Looks in a row that find it not reading, until it has to give the keyboard up. A debugger
    // computes between two prompts.
    static constexpr int kIdleLooks = 10;

    // `ours`: ddprun's group or the holder's is in the foreground. Else ddprun runs in the
    // background, and nobody can have the keyboard.
    // It was stopped because it needs the terminal.
    void asks(std::int64_t pid, bool ours);
    void ended(std::int64_t pid);
    // A look has found whether the holder reads.
    void looked(bool reads, bool ours);

    std::int64_t holder() const { return holder_; }  // 0: ddprun
    const std::vector<std::int64_t>& waiting() const { return waiting_; }
    bool is_used() const { return holder_ != 0 || !waiting_.empty(); }

  private:
    void give(bool ours);

    std::int64_t holder_ = 0;
    std::vector<std::int64_t> waiting_;
    int idle_ = 0;
};

}  // namespace ddprun::agent
