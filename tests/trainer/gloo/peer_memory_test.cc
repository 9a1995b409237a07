// The memory of another process: what is read, and when a read fails.
#include "trainer/gloo/peer_memory.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <vector>

namespace ddprun::trainer {
namespace {

constexpr std::size_t kCount = 100'000;

// A process that ends when this object does. It has a copy of this one's memory, at the same
// addresses.
class Twin {
  public:
    Twin() {
        int ends[2];
        if (pipe(ends) != 0 || (process_ = fork()) < 0) std::abort();
        keep_ = ends[1];
        if (process_ == 0) {
            ::close(ends[1]);
            char word = 0;
            (void)!::read(ends[0], &word, 1);  // returns when the other end is closed
            _exit(0);
        }
        ::close(ends[0]);
    }
    ~Twin() { end(); }
    Twin(const Twin&) = delete;
    Twin& operator=(const Twin&) = delete;

    void end() {
        if (keep_ >= 0) ::close(keep_);
        keep_ = -1;
        if (process_ > 0) waitpid(process_, nullptr, 0);
    }
    PeerMemory memory() const { return PeerMemory(process_); }

  private:
    pid_t process_ = -1;
    int keep_ = -1;
};

std::uint64_t address_of(const void* data) { return reinterpret_cast<std::uint64_t>(data); }

bool may_read() {
    const MemoryMark mark(1);
    char from = 0, to = 0;
    return Twin().memory().read(address_of(&from), &to, 1, mark.place()) != EPERM;
}

TEST(PeerMemory, ReadsWhatAnotherProcessHas) {
    if (!may_read()) GTEST_SKIP() << "the kernel lets no process read another one's memory here";
    std::vector<int> values(kCount, 7);
    const MemoryMark mark(4711);
    const Twin twin;
    // The twin keeps the sevens.
    values.assign(kCount, 8);
    std::vector<int> read(kCount);
    ASSERT_EQ(twin.memory().read(address_of(values.data()), read.data(), kCount * sizeof(int),
                                 mark.place()),
              0);
    EXPECT_EQ(read, std::vector<int>(kCount, 7));
}

// The mark is looked at after the data: what was copied from memory that was taken back is refused.
TEST(PeerMemory, RefusesMemoryThatWasTakenBack) {
    if (!may_read()) GTEST_SKIP() << "the kernel lets no process read another one's memory here";
    const int value = 7;
    std::optional<MemoryMark> mark(4711);
    const auto place = mark->place();
    mark.reset();
    const Twin after;
    int read = 0;
    EXPECT_EQ(after.memory().read(address_of(&value), &read, sizeof read, place), ESTALE);
}

TEST(PeerMemory, SaysWhyItCannotRead) {
    if (!may_read()) GTEST_SKIP() << "the kernel lets no process read another one's memory here";
    const MemoryMark mark(4711);
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    // Two pages, of which the second one is no longer there.
    void* pages =
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    munmap(static_cast<char*>(pages) + page, page);
    Twin twin;
    std::vector<char> read(2 * page);
    EXPECT_EQ(twin.memory().read(address_of(pages), read.data(), 2 * page, mark.place()), EFAULT);
    EXPECT_EQ(twin.memory().read(address_of(pages), read.data(), page, mark.place()), 0);
    twin.end();
    EXPECT_EQ(twin.memory().read(address_of(pages), read.data(), page, mark.place()), ESRCH);
    munmap(pages, page);
}

}  // namespace
}  // namespace ddprun::trainer
