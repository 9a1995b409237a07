// Large buffers between ranks on one host: what goes through sockets, who may keep them there, and
// a rank that gives up while others read its memory.
#include "trainer/gloo/gloo_memory_ring.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

#include "tests/trainer/group_rank.h"
#include "trainer/gloo/gloo_mesh.h"

namespace ddprun::trainer {
namespace {

using std::chrono::seconds;
using test::Ends;
using test::run_ranks;
using test::StoreRank;

struct MeshRank : StoreRank {
    explicit MeshRank(const Context& context, bool shares_memory = true)
        : StoreRank(context),
          mesh(GlooMesh::connect(context, *store, GlooMesh::Clock::now() + seconds(20), seconds(20),
                                 shares_memory)
                   .value()) {}

    std::unique_ptr<GlooMesh> mesh;
};

// What this process has written so far, to whatever descriptor.
struct Written {
    Written() {
        std::ifstream io("/proc/self/io");
        for (std::string name; io >> name;)
            io >> (name == "wchar:" ? bytes : name == "syscw:" ? calls : other);
    }
    long bytes = 0, calls = 0, other = 0;
};

// Exit code of a test that the kernel makes impossible.
constexpr int kForbidden = 77;

// Bytes and system calls that a rank writes for one all-reduce of 4.7 MB.
int written_by_all_reduce(const Context& context, bool shares_memory, long most_bytes,
                          long most_calls) {
    MeshRank me(context, shares_memory);
    if (shares_memory && !me.mesh->calls().shares_memory()) return kForbidden;
    std::vector<float> values(1'179'649, 1);
    constexpr int kRounds = 10;
    const Written before;
    for (int i = 0; i < kRounds; ++i)
        me.mesh->calls().run(Operation::all_reduce(buffer_of(std::span(values)), ReduceOp::avg),
                             static_cast<GlooCalls::Channel>(1 + i));
    const Written after;
    const long bytes = (after.bytes - before.bytes) / kRounds;
    const long calls = (after.calls - before.calls) / kRounds;
    std::printf("rank %d of %d: an all-reduce of 4.7 MB writes %ld bytes in %ld calls\n",
                context.rank.value, context.world_size, bytes, calls);
    if (values.front() != 1 || values.back() != 1) return 1;
    me.mesh->leave(*me.store);
    return bytes <= most_bytes && calls <= most_calls ? 0 : 2;
}

bool forbidden(const Ends& ends) { return ends == Ends(ends.size(), kForbidden); }

// A ring of N ranks has 2 (N - 1) hops. A message of Gloo's is two writes and the announcement of
// its receiver, some 40 bytes each.
TEST(GlooMemoryRing, SendsWordsAlone) {
    for (int world : {2, 3, 4}) {
        const long messages = 2 * (world - 1) + 1;
        const auto ends = run_ranks(world, [&](const Context& context) {
            return written_by_all_reduce(context, true, 160 * messages, 3 * messages + 2);
        });
        if (forbidden(ends)) GTEST_SKIP() << "no process may read another one's memory here";
        EXPECT_EQ(ends, Ends(static_cast<std::size_t>(world), 0));
    }
}

// The same in messages: a rank sends 2 (N - 1) / N of the buffer, 4.7 MB for two ranks.
TEST(GlooMemoryRing, IsNotUsedWhereARankForbidsIt) {
    const auto ends = run_ranks(2, [](const Context& context) {
        MeshRank me(context, context.is_first());
        if (me.mesh->calls().shares_memory()) return 1;
        std::vector<float> values(1'179'649, 1);
        const Written before;
        me.mesh->calls().run(Operation::all_reduce(buffer_of(std::span(values))), 1);
        me.mesh->leave(*me.store);
        return Written().bytes - before.bytes > 4'700'000 && values.back() == 2 ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose own pages count
// Page faults of a rank in ten all-reduces in messages, behind three that fill the memory's caches.
long faults_of_all_reduces(const Context& context, std::size_t bytes) {
    MeshRank me(context, false);
    std::vector<float> values(bytes / sizeof(float), 1);
    const auto faults = [] {
        rusage now{};
        getrusage(RUSAGE_SELF, &now);
        return now.ru_minflt;
    };
    long before = 0;
    for (GlooCalls::Channel i = 1; i <= 13; ++i) {
        me.mesh->calls().run(Operation::all_reduce(buffer_of(std::span(values))), i);
        if (i == 3) before = faults();
    }
    const long found = faults() - before;
    std::printf("rank %d: ten all-reduces of %zu MiB have %ld page faults\n", context.rank.value,
                bytes >> 20, found);
    me.mesh->leave(*me.store);
    return found;
}

// Memory for what arrives ahead is used again. A fresh map in each call of 64 MiB would be 8,192
// faults, and as much time as half of the call.
TEST(GlooMessageRing, UsesItsMemoryAgain) {
    for (const std::size_t mib : {25, 64, 100}) {
        const auto ends = run_ranks(2, [&](const Context& context) {
            return faults_of_all_reduces(context, mib << 20) < 2000 ? 0 : 1;
        });
        EXPECT_EQ(ends, Ends({0, 0})) << mib << " MiB";
    }
}
#endif

// A sum has the same bits on both ways, with thirds that floats cannot say.
TEST(GlooMemoryRing, GivesTheBitsOfMessages) {
    const auto ends = run_ranks(3, [](const Context& context) {
        std::vector<float> values[2];
        auto store = connect_store(context, seconds(10)).value();
        for (const bool shares_memory : {false, true}) {
            auto own = store->another(shares_memory ? "memory" : "messages").value();
            auto mesh = GlooMesh::connect(context, *own, GlooMesh::Clock::now() + seconds(20),
                                          seconds(20), shares_memory)
                            .value();
            auto& sums = values[shares_memory];
            for (int i = 0; i < 300'001; ++i)
                sums.push_back(static_cast<float>(i % 1009) / 3 +
                               static_cast<float>(context.rank.value) / 7);
            mesh->calls().run(Operation::all_reduce(buffer_of(std::span(sums)), ReduceOp::avg), 1);
            mesh->calls().run(Operation::barrier(), 2);
            mesh->leave(*own);
        }
        return values[0] == values[1] ? 0 : 1;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Memory that only its process may use, as a driver's mappings are. Empty: not to be had here.
std::span<float> secret_memory(std::size_t count) {
    const int fd = static_cast<int>(syscall(SYS_memfd_secret, O_CLOEXEC));
    const std::size_t bytes = count * sizeof(float);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return {};
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) return {};
    return {static_cast<float*>(at), count};
}

// The buffer of rank 0 cannot be read from outside, that of rank 1 can.
TEST(GlooMemoryRing, CopiesWhatCannotBeReadFromOutside) {
    const auto ends = run_ranks(2, [](const Context& context) {
        MeshRank me(context);
        std::vector<float> plain(500'000);
        std::span<float> values(plain);
        if (context.is_first()) values = secret_memory(plain.size());
        if (!me.mesh->calls().shares_memory()) return kForbidden;
        const bool there = !values.empty();
        if (there) std::fill(values.begin(), values.end(), context.is_first() ? 1.0f : 2.0f);
        char both[2], mine = there;
        me.mesh->calls().all_gather(&mine, both, 1, 1);
        if (both[0] && both[1]) me.mesh->calls().run(Operation::all_reduce(buffer_of(values)), 2);
        me.mesh->leave(*me.store);
        if (!both[0] || !both[1]) return kForbidden;
        return std::all_of(values.begin(), values.end(), [](float v) { return v == 3; }) ? 0 : 1;
    });
    if (forbidden(ends)) GTEST_SKIP() << "no such memory, or no process may read another one's";
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Rank 1 reads after rank 0 has given up and uses its memory for something else. It must not take
// what is there now for gradients. (Without the mark it would, and then wait for a word.)
TEST(GlooMemoryRing, TakesNothingFromARankThatHasGivenUp) {
    const auto ends = run_ranks(2, [](const Context& context) {
        MeshRank me(context);
        auto& calls = me.mesh->calls();
        if (!calls.shares_memory()) return kForbidden;
        std::vector<float> values(1'000'000, 1);
        const auto operation = Operation::all_reduce(buffer_of(std::span(values)));
        // Rank 0 offers its memory to a rank that waits for the offer, which so arrives at once:
        // before what is sent later.
        std::unique_ptr<GlooRing> ring;
        if (!context.is_first()) ring = calls.start(operation, 1);
        calls.run(Operation::barrier(), 2);
        if (context.is_first()) ring = calls.start(operation, 1);
        calls.run(Operation::barrier(), 3);
        if (context.is_first()) {
            ring.reset();
            values.assign(values.size(), 1e9f);
            if (!me.say("gone") || !me.hear("seen")) return 1;
            me.mesh->leave(*me.store);
            return 0;
        }
        if (!me.hear("gone")) return 2;
        std::string problem;
        try {
            ring->finish();
        } catch (const std::exception& error) {
            problem = error.what();
        }
        if (!me.say("seen")) return 3;
        me.mesh->leave(*me.store);
        if (problem.find("cannot be read: Stale") == std::string::npos) return 4;
        return std::all_of(values.begin(), values.end(), [](float v) { return v == 1; }) ? 0 : 5;
    });
    if (forbidden(ends)) GTEST_SKIP() << "no process may read another one's memory here";
    EXPECT_EQ(ends, Ends({0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
