// The group over NCCL when something goes wrong: a rank dies, hangs, makes another call, or NCCL
// fails in one of its ways. On the played GPU, with the double of NCCL. All ranks end soon, with an
// error that names the call that failed, and no other.
#include <gmock/gmock.h>
#include <signal.h>

#include <thread>

#include "tests/trainer/gpu_rank.h"
#include "trainer/group/neighbours.h"
#include "trainer/nccl/process_group_nccl.h"

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Ends;
using test::expects_error;
using test::GpuFloats;
using test::GpuRank;

// The time-outs of the groups are 60 s where nothing may wait for them: the test gives 30.
Ends run_ranks(int world, const std::function<int(const Context&)>& body) {
    return test::run_gpu_ranks(world, body, seconds(30));
}

// Three calls of the shape, so that later ones are not compared.
bool warm_up(ProcessGroup& group, const Buffer& buffer) {
    for (int i = 0; i < 3; ++i)
        if (!group.all_reduce(buffer)) return false;
    return true;
}

// Rank 2 is killed while the others wait for it. Both name it, and every later call says the same.
TEST(NcclFailures, NoticesAKilledRank) {
    auto ends = run_ranks(3, [](const Context& context) {
        GpuRank me(context);
        GpuFloats numbers(100);
        if (!warm_up(*me.group, numbers.buffer())) return 1;
        if (context.rank.value == 2) {
            if (!me.hear("begun0") || !me.hear("begun1")) return 3;
            raise(SIGKILL);
        }
        const auto work = me.group->begin(Operation::all_reduce(numbers.buffer()));
        if (!me.say("begun" + std::to_string(context.rank.value))) return 2;
        const auto begun = std::chrono::steady_clock::now();
        const auto done = work.wait();
        const auto took = std::chrono::steady_clock::now() - begun;
        std::fprintf(stderr, "noticed after %.3f s\n", std::chrono::duration<double>(took).count());
        if (int wrong = expects_error(done, "rank 2")) return wrong;
        if (int wrong = expects_error(done, "all_reduce number 4 of 100 F32")) return wrong;
        return expects_error(me.group->barrier(), "all_reduce number 4 of 100 F32");
    });
    EXPECT_EQ(ends, Ends({0, 0, -SIGKILL}));
}

// NCCL never gets ready on rank 1. It gives up at its time-out, and the others at once.
TEST(NcclFailures, EndsWhenNcclIsNeverReady) {
    auto ends = run_ranks(3, [](const Context& context) {
        const bool first = context.is_first();
        test::nccl_faults().never_ready = true;
        auto store = connect_store(context, seconds(10)).value();
        const auto timeout = first ? milliseconds(500) : milliseconds(60'000);
        auto made = make_process_group(context, *store, {Backend::nccl, timeout, {}});
        if (made) return 1;
        return expects_error(made.error(), "NCCL was not ready after 500 ms");
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// All of connecting has one deadline, and who waits for a rank names it. The time-out of the group
// is a minute here, so whoever takes it once more is killed by the test.
TEST(NcclFailures, ConnectsUntilOneDeadline) {
    auto ends = run_ranks(2, [](const Context& context) {
        const auto deadline = std::chrono::steady_clock::now() + milliseconds(500);
        const GroupOptions options{Backend::nccl, seconds(60), {}};
        auto store = connect_store(context, seconds(10)).value();
        const auto connect = [&](const std::string& place) {
            return make_nccl_group(context, store->another(place).value(), options, deadline);
        };
        test::nccl_faults().never_ready = true;
        const auto never_ready = connect("one");
        if (never_ready || never_ready.error().code() != ErrorCode::timed_out) return 1;
        // Rank 0 comes, and gives no id.
        auto two = store->another("two").value();
        const auto near = std::chrono::steady_clock::now() + seconds(20);
        if (context.is_first()) {
            const auto neighbours = Neighbours::connect(context, *two, near);
            return neighbours && store->get("over", seconds(20)) ? 0 : 2;
        }
        const auto no_id = make_nccl_group(context, std::move(two), options,
                                           std::chrono::steady_clock::now() + milliseconds(500));
        if (!store->set("over", "1") || !store->add("flush", 1)) return 3;
        if (no_id) return 4;
        return expects_error(no_id.error(), "rank 0 gave no NCCL id");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Five calls are under way when NCCL reports that the third one failed. The first two have
// succeeded, the third is named by its number, and the others do not claim to be it.
TEST(NcclFailures, NamesTheCallThatFailedAndNoOther) {
    for (int round = 0; round < 50; ++round) {
        auto ends = run_ranks(2, [](const Context& context) {
            GpuRank me(context);
            GpuFloats numbers(100);
            if (!warm_up(*me.group, numbers.buffer())) return 1;
            if (context.rank.value == 1) test::nccl_faults().fails_at = test::nccl_calls() + 3;
            std::vector<Work> works;
            for (int i = 0; i < 5; ++i)
                works.push_back(me.group->begin(Operation::all_reduce(numbers.buffer())));
            const auto third = works[2].wait();
            // Rank 0 learns it from rank 1, and may have begun less by then.
            if (!context.is_first() && (!works[0].wait() || !works[1].wait())) return 2;
            for (const Work& work : works) {
                const auto done = work.wait();
                if (done) continue;
                if (int wrong = expects_error(done, "all_reduce number 6 of 100 F32")) return wrong;
                if (done.error().sentence().find("number 7") != std::string::npos) return 3;
                if (done.error().sentence().find("number 8") != std::string::npos) return 4;
            }
            if (third || works[4].wait()) return 5;
            return expects_error(third, "remote process exited");
        });
        ASSERT_EQ(ends, Ends({0, 0})) << "round " << round;
    }
}

// Rank 1 takes part in nothing from its third call on. Rank 0 ends at its time-out, and only the
// call that hung is named.
TEST(NcclFailures, TimesOutInTheCallThatHangs) {
    auto ends = run_ranks(2, [](const Context& context) {
        GpuRank me(context, context.is_first() ? milliseconds(700) : milliseconds(60'000));
        GpuFloats numbers(100);
        if (!warm_up(*me.group, numbers.buffer())) return 1;
        if (context.rank.value == 1) test::nccl_faults().hangs_at = test::nccl_calls() + 3;
        std::vector<Work> works;
        for (int i = 0; i < 5; ++i)
            works.push_back(me.group->begin(Operation::all_reduce(numbers.buffer())));
        if (!works[0].wait() || !works[1].wait()) return 2;
        const auto done = works[2].wait();
        if (int wrong = expects_error(done, "all_reduce number 6 of 100 F32")) return wrong;
        return expects_error(works[4].wait(), "timed out after 700 ms");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A call of NCCL's does not return. The watch ends it at the time-out of the group; the thread that
// was inside comes back with the error.
TEST(NcclFailures, EndsACallThatDoesNotReturn) {
    auto ends = run_ranks(1, [](const Context& context) {
        GpuRank me(context, milliseconds(500));
        GpuFloats numbers(100);
        if (!warm_up(*me.group, numbers.buffer())) return 1;
        test::nccl_faults().returns_late_at = test::nccl_calls() + 1;
        test::nccl_faults().late = std::chrono::hours(1);
        return expects_error(me.group->all_reduce(numbers.buffer()), "timed out after 500 ms");
    });
    EXPECT_EQ(ends, Ends({0}));
}

// One that returns late is no failure.
TEST(NcclFailures, AcceptsACallThatReturnsLate) {
    auto ends = run_ranks(2, [](const Context& context) {
        GpuRank me(context);
        GpuFloats numbers(100);
        if (!warm_up(*me.group, numbers.buffer())) return 1;
        if (context.is_first()) {
            test::nccl_faults().returns_late_at = test::nccl_calls() + 1;
            test::nccl_faults().late = milliseconds(300);
        }
        return me.group->all_reduce(numbers.buffer()) && me.group->barrier() ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// abort() ends the running call here, and then on the other rank. No later call is let through.
TEST(NcclFailures, ForbidsCallsAfterAnAbort) {
    auto ends = run_ranks(2, [](const Context& context) {
        GpuRank me(context);
        GpuFloats numbers(100);
        if (!warm_up(*me.group, numbers.buffer())) return 1;
        if (context.is_first()) {
            auto work = me.group->begin(Operation::all_reduce(numbers.buffer()));
            std::thread aborter([&] { me.group->abort(); });
            const auto done = work.wait();
            aborter.join();
            if (!me.say("aborted")) return 2;
            if (int wrong = expects_error(done, "the group was aborted")) return wrong;
            return expects_error(me.group->barrier(), "the group was aborted; make a new one");
        }
        // This rank never joins that call, and is told all the same.
        if (!me.hear("aborted")) return 3;
        return expects_error(me.group->barrier(), "the group was aborted");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Two groups hang at a time, and NCCL's abort waits for the whole GPU: each abort waits for the
// other group's call. Both groups get their errors.
TEST(NcclFailures, AbortsTwoGroupsThatWaitForEachOther) {
    auto ends = run_ranks(2, [](const Context& context) {
        GpuRank me(context, context.is_first() ? milliseconds(500) : milliseconds(60'000));
        auto part = me.group->split(0).value();
        GpuFloats numbers(100), others(100);
        if (!warm_up(*me.group, numbers.buffer()) || !warm_up(*part, others.buffer())) return 1;
        // Rank 1 joins neither call, until rank 0 has its errors.
        if (!context.is_first()) return me.hear("over") ? 0 : 2;
        auto one = me.group->begin(Operation::all_reduce(numbers.buffer()));
        auto two = part->begin(Operation::all_reduce(others.buffer()));
        const auto first = one.wait(), second = two.wait();
        if (!me.say("over")) return 3;
        if (int wrong = expects_error(first, "timed out after 500 ms")) return wrong;
        return expects_error(second, "timed out after 500 ms");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Rank 1 cannot make its part. The others, of its part and of another one, end at once.
TEST(NcclFailures, EndsASplitThatFailsOnOneRank) {
    auto ends = run_ranks(4, [](const Context& context) {
        GpuRank me(context);
        if (context.rank.value == 1) test::nccl_faults().split_fails = true;
        const auto part = me.group->split(context.rank.value / 2);
        if (part) return 1;
        if (int wrong = expects_error(part.error(), "rank 1 of 4: split number 1 failed"))
            return wrong;
        // The group is over, too.
        return me.group->barrier() ? 2 : 0;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
}

// The first calls of a shape are compared, also after a hundred other calls, and also when only the
// caller differs. Both calls are quoted.
TEST(NcclFailures, RefusesAnotherCall) {
    auto ends = run_ranks(2, [](const Context& context) {
        GpuRank me(context);
        GpuFloats numbers(100), more(101);
        for (int i = 0; i < 100; ++i)
            if (!me.group->call(Operation::broadcast(numbers.buffer()).of("parameters"))) return 1;
        const auto done =
            me.group->all_reduce(context.is_first() ? numbers.buffer() : more.buffer());
        if (done || done.error().code() != ErrorCode::refused) return 2;
        return expects_error(done, "rank 0 calls all_reduce number 101 of 100 F32");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
    ends = run_ranks(2, [](const Context& context) {
        GpuRank me(context);
        GpuFloats numbers(100);
        const auto operation = Operation::all_reduce(numbers.buffer());
        const auto done = me.group->call(operation.of(context.is_first() ? "loss" : "accuracy"));
        if (done || done.error().code() != ErrorCode::refused) return 1;
        return expects_error(done, "for loss");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Two groups over the same ranks are launched in another order on rank 1. NCCL would hang; with
// `checked_launches` the rank that comes second names both calls, and the first one reads of it.
TEST(NcclFailures, NamesTwoGroupsThatAreLaunchedInAnotherOrder) {
    auto ends = run_ranks(2, [](const Context& context) {
        GpuRank me(context, seconds(60), 1000);
        auto part = me.group->split(0).value();
        GpuFloats numbers(10), others(10);
        if (!warm_up(*me.group, numbers.buffer()) || !warm_up(*part, others.buffer())) return 1;
        const auto in_whole = Operation::all_reduce(numbers.buffer());
        const auto in_part = Operation::all_reduce(others.buffer());
        if (context.is_first()) {
            const Work one = me.group->begin(in_whole), two = part->begin(in_part);
            if (!me.say("begun")) return 2;
            if (one.wait()) return 3;
            return expects_error(two.wait(), "in color 0 of split 1, and rank 0 all_reduce");
        }
        if (!me.hear("begun")) return 4;
        const auto done = part->begin(in_part).wait();
        if (done || done.error().code() != ErrorCode::refused) return 5;
        if (int wrong = expects_error(done, "in color 0 of split 1, and rank 0 all_reduce number"))
            return wrong;
        return expects_error(done, "in the whole group, as number");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Without that check each rank waits in another group than the other one, until the time-out, which
// says in which.
TEST(NcclFailures, NamesTheOtherGroupInWhichARankWaits) {
    auto ends = run_ranks(2, [](const Context& context) {
        GpuRank me(context, seconds(6));
        auto one = me.group->split(0).value(), two = me.group->split(0).value();
        GpuFloats numbers(10);
        if (!warm_up(*one, numbers.buffer()) || !warm_up(*two, numbers.buffer())) return 1;
        if (!me.group->barrier()) return 2;
        const bool first = context.is_first();
        const auto done = (first ? one : two)->all_reduce(numbers.buffer());
        return expects_error(done, first ? "rank 1 waits in all_reduce number 4 of 10 F32 (40 "
                                           "bytes) in color 0 of split 2: all ranks must call"
                                         : "rank 0 waits in all_reduce number 4 of 10 F32 (40 "
                                           "bytes) in color 0 of split 1: all ranks must call");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The same when both ranks launch at a time: each has the sentence, whichever comes second.
TEST(NcclFailures, NamesTwoGroupsThatAreLaunchedInAnotherOrderAtATime) {
    auto ends = run_ranks(2, [](const Context& context) {
        GpuRank me(context, seconds(60), 1000);
        auto part = me.group->split(0).value();
        GpuFloats numbers(10), others(10);
        if (!warm_up(*me.group, numbers.buffer()) || !warm_up(*part, others.buffer())) return 1;
        ProcessGroup& first = context.is_first() ? *me.group : *part;
        ProcessGroup& second = context.is_first() ? *part : *me.group;
        const Work one = first.begin(Operation::all_reduce(numbers.buffer()));
        const Work two = second.begin(Operation::all_reduce(others.buffer()));
        const auto done = one.wait() ? two.wait() : one.wait();
        if (int wrong = expects_error(done, " in color 0 of split 1")) return wrong;
        return expects_error(done, " in the whole group");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Two calls of shapes that are known already come in another order on rank 1. NCCL hangs; the ranks
// find out what each waits for long before the time-out.
TEST(NcclFailures, FindsAnotherOrderBeforeTheTimeout) {
    auto ends = run_ranks(2, [](const Context& context) {
        GpuRank me(context);
        GpuFloats few(10), many(20);
        if (!warm_up(*me.group, few.buffer()) || !warm_up(*me.group, many.buffer())) return 1;
        const bool first = context.is_first();
        auto one = me.group->begin(Operation::all_reduce(first ? few.buffer() : many.buffer()));
        auto two = me.group->begin(Operation::all_reduce(first ? many.buffer() : few.buffer()));
        const auto done = one.wait();
        if (done || done.error().code() != ErrorCode::refused) return 2;
        if (int wrong = expects_error(done, "calls all_reduce number 7 of")) return wrong;
        return two.wait() ? 3 : 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
