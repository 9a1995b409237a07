// Runs the ranks of one generation as processes of their own, over a real store on loopback, with a
// deadline. Everything is gone when run_ranks() returns: processes are killed at the deadline and
// reaped, and the store is closed.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/worker/context.h"

namespace ddprun::trainer::test {

// A socket that listens on loopback, for a store. The kernel chooses the port.
struct Listener {
    int fd;
    std::uint16_t port;
};
Listener listen_on_loopback();

// How the ranks ended, in their order: the exit code, or minus the signal.
using Ends = std::vector<int>;

// The end of a rank that was killed at the deadline. A rank that kills itself by SIGKILL has the
// same.
inline constexpr int kOverdue = -9;

// Each rank runs `body` in a fork and exits with what it returns. Bodies return another number at
// each place that can fail, so the number says which check did. An exception is exit code 99. The
// context is generation 0 of the run "test".
Ends run_ranks(int world, const std::function<int(const Context&)>& body,
               std::chrono::seconds deadline = std::chrono::seconds(30));

// Each rank executes the program with the variables of a launcher. What rank r prints is appended
// to the file `output`/r. The program takes longer to start than a fork, hence the longer deadline.
Ends run_program(int world, int generation, const std::vector<std::string>& command,
                 const std::filesystem::path& output,
                 std::chrono::seconds deadline = std::chrono::seconds(60));

// What ranks need besides their store: PMI, for MPI (mpi/pmi_ranks.cc). One object for each
// run_ranks(), made before the ranks are forked.
class RankHost {
  public:
    virtual ~RankHost() = default;
    virtual void enter(int rank) = 0;  // in the process of the rank
    virtual void serve() = 0;          // in the test, when all are forked; until it is destroyed
};
// Set before main() by a test program that needs it.
extern std::unique_ptr<RankHost> (*make_rank_host)(int world);

// A folder that is removed with its content.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    operator std::string() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

// Whole files. A missing file reads as an empty text.
std::string read_all(const std::filesystem::path& file);
void write_all(const std::filesystem::path& file, const std::string& text);

}  // namespace ddprun::trainer::test
