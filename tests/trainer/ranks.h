// Runs the ranks of one generation as processes of their own over a real store on loopback, with a
// deadline.
//
// Everything is gone when run_ranks returns: processes are killed at the deadline and reaped, the
// store is closed.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer/worker/context.h"

namespace ddprun::trainer::test {

// A socket that listens on loopback, for a store.
struct Listener {
    int fd;
    std::uint16_t port;
};
Listener listen_on_loopback();

// How a rank ended: its exit code, or minus the signal.
using Ends = std::vector<int>;

inline constexpr int kOverdue = -9;  // killed at the deadline (or killed itself that way)

// Each rank runs `body` in a fork and exits with what it returns; an exception is exit code 99.
Ends run_ranks(int world, const std::function<int(const Context&)>& body,
               std::chrono::seconds deadline = std::chrono::seconds(30));

// Each rank executes the program with its variables set; the output of rank r is added to
// `output`/r.
Ends run_program(int world, int generation, const std::vector<std::string>& command,
                 const std::filesystem::path& output,
                 std::chrono::seconds deadline = std::chrono::seconds(60));

// A folder that is removed with all it holds.
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

std::string read_all(const std::filesystem::path& file);
void write_all(const std::filesystem::path& file, const std::string& text);

}  // namespace ddprun::trainer::test
