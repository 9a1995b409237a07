// What is different over MPI: who initialises and finalises it, the ranks that it counts, and a
// rank that dies within a call.
#include "trainer/mpi/mpi_group.h"

#include <gmock/gmock.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/trainer/group_rank.h"

namespace {
bool hangs = false;
}
// As a tool of MPI's own interface for them: it stands before MPI's function.
extern "C" int MPI_Finalize() {
    while (hangs) pause();
    return PMPI_Finalize();
}

namespace ddprun::trainer {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using test::Ends;
using test::expects_error;
using test::GroupRank;
using test::run_ranks;

bool adds_up(ProcessGroup& group) {
    double value[] = {group.rank() + 1.0};
    return group.all_reduce_values(value) && value[0] == group.size() * (group.size() + 1) / 2.0;
}

bool is_finalized() {
    int over = 0;
    MPI_Finalized(&over);
    return over;
}

// Groups and parts share MPI, and the last of them finalises it. Then there is no other one.
TEST(MpiGroup, FinalisesWithTheLastGroup) {
    for (int world : {1, 4}) {
        auto ends = run_ranks(world, [](const Context& context) {
            auto store = connect_store(context, seconds(10)).value();
            auto group = make_mpi_group(context, *store).value();
            auto other = make_mpi_group(context, *store).value();
            auto half = group->split(context.rank.value % 2).value();
            if (!adds_up(*group) || !adds_up(*other) || !adds_up(*half)) return 1;
            half.reset();
            other.reset();
            if (is_finalized() || !adds_up(*group)) return 2;
            group.reset();
            if (!is_finalized()) return 3;
            return expects_error(make_mpi_group(context, *store).error(),
                                 "MPI has been finalised, and a process can use it once");
        });
        EXPECT_EQ(ends, Ends(static_cast<std::size_t>(world), 0));
    }
}

// MPI hangs in its end. Each rank ends with the reason, and what it had printed is kept.
TEST(MpiGroup, EndsWhenMpiIsNotFinalisedInTime) {
    test::TemporaryFolder folder;
    auto ends = run_ranks(2, [&](const Context& context) {
        const std::string file = folder.path() / std::to_string(context.rank.value);
        setenv("TORCHELASTIC_ERROR_FILE", file.c_str(), 1);
        if (!std::freopen((file + ".out").c_str(), "w", stdout)) return 1;
        std::printf("done\n");
        auto store = connect_store(context, seconds(10)).value();
        auto group = make_mpi_group(context, *store, {Backend::automatic, seconds(4), {}}).value();
        if (!adds_up(*group)) return 2;
        hangs = true;
        group.reset();
        return 3;
    });
    EXPECT_EQ(ends, Ends({1, 1}));
    for (const char* rank : {"0", "1"}) {
        EXPECT_THAT(test::read_all(folder.path() / rank),
                    testing::HasSubstr("MPI_Finalize() has not ended within 4000 ms"));
        EXPECT_EQ(test::read_all(folder.path() / (std::string(rank) + ".out")), "done\n");
    }
}

// The program has initialised MPI: it also finalises it, and may make one group after the other.
TEST(MpiGroup, LeavesMpiToAProgramThatHasInitialisedIt) {
    auto ends = run_ranks(2, [](const Context& context) {
        int threads = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads);
        for (int i = 0; i < 2; ++i) {
            GroupRank me(context);
            if (!adds_up(*me.group)) return 1;
        }
        if (is_finalized()) return 2;
        MPI_Finalize();
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

TEST(MpiGroup, RefusesAnMpiForOneThread) {
    auto ends = run_ranks(2, [](const Context& context) {
        MPI_Init(nullptr, nullptr);
        auto store = connect_store(context, seconds(10)).value();
        return expects_error(make_mpi_group(context, *store).error(), "MPI_THREAD_SERIALIZED");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Without PMI each process is alone to MPI.
TEST(MpiGroup, RefusesRanksThatMpiDoesNotKnow) {
    auto ends = run_ranks(2, [](const Context& context) {
        for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
        auto store = connect_store(context, seconds(10)).value();
        const auto done = make_mpi_group(context, *store).error();
        const std::string rank = std::to_string(context.rank.value);
        return expects_error(done, "this process is rank 0 of 1 to MPI, and rank " + rank +
                                       " of 2 to its launcher; start it with ddprun --pmi");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Another thread of rank 1 kills it while it makes call after call. The others get an error that
// names it, and no group of theirs goes on: MPI cannot.
TEST(MpiGroup, NamesARankThatDiesWithinACall) {
    auto ends = run_ranks(
        3,
        [](const Context& context) {
            GroupRank me(context, minutes(10));
            auto other = make_mpi_group(context, *me.store).value();
            std::vector<float> values(100, 1.0f);
            std::thread killer;
            for (int i = 0; i < 1'000'000; ++i) {
                if (i == 7 && context.rank.value == 1)
                    killer = std::thread([] { (void)raise(SIGKILL); });
                const auto done = me.group->all_reduce(buffer_of(std::span(values)));
                if (done) continue;
                return expects_error(done, "missing: rank 1") +
                       expects_error(other->barrier(), "MPI cannot go on") +
                       expects_error(make_mpi_group(context, *me.store).error(),
                                     "MPI cannot go on");
            }
            return 2;
        },
        seconds(30));
    EXPECT_EQ(ends, Ends({0, -SIGKILL, 0}));
}

// Large messages on one host: UCX then ends a process that copies from one which has died. Each
// rank ends soon all the same, by an error or by that.
TEST(MpiGroup, EndsWithARankThatDiesInALargeCall) {
    auto ends = run_ranks(
        3,
        [](const Context& context) {
            GroupRank me(context, minutes(10));
            std::vector<float> values(90'000, 1.0f);
            std::thread killer;
            for (int i = 0; i < 100'000; ++i) {
                if (i == 7 && context.rank.value == 1)
                    killer = std::thread([] { (void)raise(SIGKILL); });
                const auto done = me.group->broadcast(buffer_of(std::span(values)), 1);
                if (!done) return expects_error(done, "number ");
            }
            return 2;
        },
        seconds(30));
    for (int rank : {0, 2}) EXPECT_THAT(ends[rank], testing::AnyOf(0, -SIGABRT));
    EXPECT_EQ(ends[1], -SIGKILL);
}

// MPI's own min and max lose a NaN, and may find +0 on one rank and -0 on another.
TEST(MpiGroup, FindsTheSameExtremesOnAllRanks) {
    for (int world : {2, 3, 4}) {
        auto ends = run_ranks(world, [](const Context& context) {
            GroupRank me(context);
            const bool odd = context.rank.value % 2;
            for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
                float mine[] = {odd ? NAN : 1.0f, odd ? -0.0f : 0.0f};
                std::vector<std::uint64_t> all(static_cast<std::size_t>(me.group->size()));
                if (!me.group->all_reduce(buffer_of(std::span<float>(mine)), op)) return 1;
                if (!std::isnan(mine[0]) || mine[1] != 0) return 2;
                std::uint64_t bits[1];
                std::memcpy(bits, mine, sizeof bits);
                if (!me.group->all_gather(buffer_of(std::span<std::uint64_t>(bits)),
                                          buffer_of(std::span(all))))
                    return 3;
                for (const auto other : all)
                    if (other != bits[0]) return 4;
            }
            return 0;
        });
        EXPECT_EQ(ends, Ends(static_cast<std::size_t>(world), 0));
    }
}

// Two ranks agree on a message before its data move.
TEST(MpiGroup, SendsToARankThatExpectsIt) {
    auto ends = run_ranks(2, [](const Context& context) {
        GroupRank me(context);
        std::vector<float> values(100'000, context.is_first() ? 5.0f : 0.0f);
        const auto move = [&](std::size_t count) {
            const Buffer buffer = buffer_of(std::span(values).first(count));
            return context.is_first() ? me.group->send(buffer, 1) : me.group->receive(buffer, 0);
        };
        if (!move(values.size()) || values.back() != 5) return 1;
        if (context.is_first()) {
            // It may have left before this rank hears of the refusal.
            (void)me.group->send(buffer_of(std::span(values).first(3)), 1);
            return 0;
        }
        return expects_error(move(4), "rank 0 sends 3 F32, this rank expects 4 F32");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The buffer is never read: the size is refused before.
TEST(MpiGroup, RefusesMoreThanMpiCounts) {
    auto ends = run_ranks(1, [](const Context& context) {
        GroupRank me(context);
        float one = 1;
        const Buffer large{&one, std::size_t{INT_MAX} + 1, DataType::float32};
        return expects_error(me.group->all_reduce(large), "MPI counts to 2147483647 elements");
    });
    EXPECT_EQ(ends, Ends({0}));
}

}  // namespace
}  // namespace ddprun::trainer
