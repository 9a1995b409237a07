// A file system that fails, below the ledger's own code. The linker lets the system calls of this
// program go through here (-Wl,--wrap). Outside of a Mount they are the real ones.
//
// A Mount is the view of one host on the folder, as a client of a network file system has it:
// - a call fails before or after its work is done (EIO, ESTALE, ENOSPC), or is repeated
// - a write is cut
// - what was once not found is not found again from a cache, and a list of names may be old
// - the process dies within a call
// - and between any two calls, other hosts may do something.
//
// One thread. Everything follows from the seed of `random`.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>

namespace ddprun::rendezvous {

class Mount {
  public:
    // Thrown from within a call: the process is gone.
    struct Died {};

    explicit Mount(std::mt19937_64& random) : random_(random) {}

    // Runs something as this host. `others` is called between its calls, and may use other mounts.
    void use(const std::function<void()>& run, std::function<void()> others);

    // How often a call does what it should not; 0 for a good file system.
    void fail(double share) { share_ = share; }

    // ---- for the calls below
    bool chance(double share);
    bool fails() { return chance(share_); }
    int error();
    void between_calls();
    std::set<std::string> absent;  // from the cache
    std::set<std::string> listed;  // the newest list that the server has given
    bool lists_old = false;

  private:
    std::mt19937_64& random_;
    std::function<void()> others_;
    double share_ = 0;
};

}  // namespace ddprun::rendezvous
