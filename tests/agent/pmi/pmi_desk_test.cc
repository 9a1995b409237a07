// What programs of MPI ask, and what they must not get.
#include "agent/pmi/pmi_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

using namespace ddprun;
using namespace ddprun::agent::pmi;
using ddprun::agent::ExitStatus;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr const char* kInit = "cmd=init pmi_version=1 pmi_subversion=1";

rendezvous::NodePlace node(int rank, int nodes, int slots) {
    rendezvous::NodePlace place;
    place.generation = Generation{3};
    place.node_rank = rank;
    place.nodes = nodes;
    place.slots = slots;
    place.world_size = nodes * slots;
    place.rank_offset = rank * slots;
    return place;
}

std::string one_answer(Desk& desk, int index, const std::string& line) {
    const Desk::Outcome outcome = desk.line(index, line);
    EXPECT_FALSE(outcome.fault) << outcome.fault->why;
    return outcome.answers.size() == 1 && outcome.answers[0].index == index
               ? outcome.answers[0].text
               : "not one answer";
}
std::string fault(Desk& desk, const std::string& line) {
    const Desk::Outcome outcome = desk.line(0, line);
    EXPECT_TRUE(outcome.answers.empty());
    return outcome.fault ? outcome.fault->why : "none";
}
std::string put(const std::string& key, const std::string& value, const char* space = "kvs_3") {
    return std::string("cmd=put kvsname=") + space + " key=" + key + " value=" + value;
}
std::string get(const std::string& key, const char* space = "kvs_3") {
    return std::string("cmd=get kvsname=") + space + " key=" + key;
}
constexpr const char* kMissing = "cmd=get_result rc=-1 msg=key_not_found value=unknown";

}  // namespace

TEST(PmiDesk, TellsAProgramWhereItIs) {
    Desk desk(node(1, 2, 2));
    EXPECT_EQ(one_answer(desk, 0, kInit),
              "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    EXPECT_EQ(one_answer(desk, 0, "cmd=get_maxes"),
              "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0");
    EXPECT_EQ(one_answer(desk, 0, "cmd=get_appnum"), "cmd=appnum appnum=0 rc=0");
    EXPECT_EQ(one_answer(desk, 0, "cmd=get_universe_size"), "cmd=universe_size size=4 rc=0");
    EXPECT_EQ(one_answer(desk, 0, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=kvs_3 rc=0");
    EXPECT_EQ(one_answer(desk, 0, get("PMI_process_mapping")),
              "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))");
    EXPECT_EQ(one_answer(desk, 0, "cmd=finalize"), "cmd=finalize_ack rc=0");
}

// A worker that leaves in between makes the others wait. It may also be no program of MPI.
TEST(PmiDesk, KnowsWhatAnExitMeans) {
    Desk desk(node(1, 2, 2));
    const ExitStatus good, killed{.signal = SIGKILL}, lost_pipe{.signal = SIGPIPE};
    one_answer(desk, 1, "cmd=get_maxes");
    one_answer(desk, 1, kInit);
    EXPECT_EQ(desk.exited(1, good).status, ExitStatus{.code = 1});
    EXPECT_THAT(desk.exited(1, good).warning, HasSubstr("rank 3 has left with exit code 0 before"));
    EXPECT_EQ(desk.exited(1, killed).status, killed);
    EXPECT_EQ(desk.exited(1, lost_pipe).warning, "");
    one_answer(desk, 1, "cmd=finalize");
    EXPECT_EQ(desk.exited(1, good).status, good);
    EXPECT_THAT(desk.exited(1, lost_pipe).warning, HasSubstr("a second program of MPI"));
    EXPECT_EQ(desk.exited(0, lost_pipe).warning, "");
}

// A program without MPI, or one of Open MPI behind a script. One line for the node, at the end.
TEST(PmiDesk, SaysThatNobodyHasAsked) {
    Desk desk(node(1, 2, 2));
    const ExitStatus good;
    one_answer(desk, 1, "cmd=get_maxes");
    EXPECT_EQ(desk.exited(1, good).warning, "");
    const Desk::Exit last = desk.exited(0, good);
    EXPECT_EQ(last.status, good);
    EXPECT_THAT(last.warning,
                HasSubstr("none of 2 workers of this node, from rank 2 on, has asked"));
    // A worker that fails may not have come so far, nor one that is stopped because of it.
    Desk failed(node(0, 1, 2));
    EXPECT_EQ(failed.exited(0, {.code = 3}).warning, "");
    EXPECT_EQ(failed.exited(1, good).warning, "");
}

// MPI_Init waits for all ranks. Whoever leaves without it comes no more.
TEST(PmiDesk, ARankThatLeavesWithoutMpiInitIsNotWaitedFor) {
    Desk first(node(0, 1, 2));
    one_answer(first, 0, kInit);
    const Desk::Exit exit = first.exited(1, {});
    EXPECT_EQ(exit.status, ExitStatus{.code = 1});
    EXPECT_THAT(exit.warning, HasSubstr("rank 1 has left with exit code 0 before MPI_Init"));
    Desk late(node(0, 1, 2));
    EXPECT_EQ(late.exited(1, {}).warning, "");
    EXPECT_THAT(fault(late, kInit), HasSubstr("needs all ranks, and rank 1 has left before it"));
}

// Both read one socket.
TEST(PmiDesk, EndsAWorkerWithTwoProgramsAtOnce) {
    Desk desk(node(0, 1, 1));
    one_answer(desk, 0, kInit);
    EXPECT_THAT(fault(desk, kInit), HasSubstr("two programs of MPI run in it at once"));
}

TEST(PmiDesk, AValueIsThereWhenAllHaveBeenAtTheBarrier) {
    Desk desk(node(0, 2, 2));
    for (const int worker : {0, 1}) one_answer(desk, worker, kInit);
    EXPECT_EQ(one_answer(desk, 0, put("a", "1")), "cmd=put_result rc=0 msg=success");
    one_answer(desk, 1, put("b", "2"));
    EXPECT_EQ(one_answer(desk, 0, get("a")), kMissing);
    EXPECT_FALSE(desk.line(0, "cmd=barrier_in").round);
    const Desk::Outcome all_here = desk.line(1, "cmd=barrier_in");
    EXPECT_TRUE(all_here.answers.empty());
    EXPECT_EQ(all_here.round, "a 1\nb 2\n");

    const auto over = desk.round_over({*all_here.round, "c 3=x\n"});
    ASSERT_TRUE(over);
    ASSERT_EQ(over->answers.size(), 2u);
    EXPECT_EQ(over->answers[1].text, "cmd=barrier_out rc=0");
    EXPECT_EQ(one_answer(desk, 1, get("c")), "cmd=get_result rc=0 msg=success value=3=x");
    // The next round brings only what is new.
    desk.line(0, "cmd=barrier_in");
    EXPECT_EQ(desk.line(1, "cmd=barrier_in").round, "");
}

TEST(PmiDesk, WhichRanksShareAHostIsSaidWhereItIsKnown) {
    EXPECT_EQ(process_mapping(node(0, 1, 4)), "(vector,(0,1,4))");
    rendezvous::NodePlace unequal = node(0, 2, 4);
    unequal.equal_slots = false;
    EXPECT_EQ(process_mapping(unequal), "");
    rendezvous::NodePlace shared = node(0, 2, 1);
    shared.shared = rendezvous::HostPlace{0, 1, 0, 2, true};
    EXPECT_EQ(process_mapping(shared), "");
    Desk desk(unequal);
    one_answer(desk, 0, kInit);
    EXPECT_EQ(one_answer(desk, 0, get("PMI_process_mapping")), kMissing);
}

TEST(PmiDesk, RefusesWhatItDoesNotServe) {
    Desk desk(node(0, 1, 1));
    one_answer(desk, 0, kInit);
    EXPECT_EQ(one_answer(desk, 0, "cmd=publish_name service=x port=y"),
              "cmd=publish_result rc=-1 msg=ddprun_serves_no_names");
    EXPECT_THAT(one_answer(desk, 0, put("a", "1", "other")), HasSubstr("rc=-1"));
    EXPECT_THAT(one_answer(desk, 0, put(std::string(65, 'k'), "1")), HasSubstr("rc=-1"));
    EXPECT_THAT(one_answer(desk, 0, put("k", std::string(1025, 'v'))), HasSubstr("rc=-1"));
    for (const char* line : {"mcmd=spawn", "nprocs=2", "cmd=put"})
        EXPECT_TRUE(desk.line(0, line).answers.empty()) << line;
    EXPECT_THAT(one_answer(desk, 0, "endcmd"), HasSubstr("cmd=spawn_result rc=-1"));
    EXPECT_EQ(one_answer(desk, 0, "cmd=get_appnum"), "cmd=appnum appnum=0 rc=0");
}

TEST(PmiDesk, EndsAWorkerThatDoesNotKeepToIt) {
    Desk desk(node(0, 1, 1));
    EXPECT_THAT(fault(desk, "GET / HTTP/1.1"), HasSubstr("does not speak PMI-1"));
    EXPECT_THAT(fault(desk, "cmd=init pmi_version=2 pmi_subversion=0"), HasSubstr("version 2"));
    EXPECT_THAT(fault(desk, "cmd=fly"), HasSubstr("\"fly\""));
    EXPECT_THAT(fault(desk, "cmd=abort exitcode=0"), HasSubstr("MPI_Abort with exit code 0"));
    EXPECT_EQ(desk.line(0, "cmd=abort exitcode=7").fault->exit_code, 7);
    EXPECT_EQ(desk.line(0, "cmd=abort exitcode=-1").fault->exit_code, 255);
    // 256 must not become a success.
    EXPECT_EQ(desk.line(0, "cmd=abort exitcode=256").fault->exit_code, 0);
}

// The other node has not come yet. A second barrier_in once began a round within a round, and
// ddprun ended with 134.
TEST(PmiDesk, EndsAWorkerThatAsksOnWhileItWaits) {
    for (const char* line : {"cmd=barrier_in", "cmd=get_maxes", "mcmd=spawn", "cmd=finalize"}) {
        Desk desk(node(0, 2, 1));
        one_answer(desk, 0, kInit);
        EXPECT_TRUE(desk.line(0, "cmd=barrier_in").round);
        const Desk::Outcome again = desk.line(0, line);
        EXPECT_FALSE(again.round) << line;
        ASSERT_TRUE(again.fault) << line;
        EXPECT_THAT(again.fault->why, HasSubstr("while it waits at a barrier")) << line;
    }
    // MPI_Abort may come from another thread.
    Desk desk(node(0, 2, 1));
    desk.line(0, "cmd=barrier_in");
    EXPECT_THAT(fault(desk, "cmd=abort exitcode=3"), HasSubstr("MPI_Abort with exit code 3"));
}

TEST(PmiDesk, AWorkerMayPutOnlySoMuch) {
    Desk desk(node(0, 1, 1));
    one_answer(desk, 0, kInit);
    Desk::Outcome outcome;
    for (int i = 0; i < 2000 && !outcome.fault; ++i)
        outcome = desk.line(0, put("k" + std::to_string(i), std::string(1000, 'v')));
    ASSERT_TRUE(outcome.fault);
    EXPECT_THAT(outcome.fault->why, HasSubstr("1024 KiB"));
}

TEST(PmiDesk, WhatAnotherNodeHasBroughtIsLookedAt) {
    Desk desk(node(0, 2, 1));
    EXPECT_FALSE(desk.round_over({"a 1\n", "nonsense\n"}));
    EXPECT_TRUE(desk.round_over({"", "a \n"}));  // an empty value
}
