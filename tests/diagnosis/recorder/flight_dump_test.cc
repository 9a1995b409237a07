// What is read from flight recorders. The dumps of Gloo in tests/data/recorder were recorded with
// PyTorch 2.15 on three ranks, by its worker server (fr_trace_json). Those of NCCL are written by
// its description here: no GPU was there. Pure.
#include "diagnosis/recorder/flight_dump.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "rendezvous/hangs/call_mismatch.h"

namespace ddprun::agent {
namespace {

using rendezvous::RecordedCalls;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

std::string recorded(const std::string& name) {
    std::ifstream file(std::string(DDPRUN_TEST_DATA) + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_FALSE(text.str().empty()) << name;
    return text.str();
}

// What is said of the dumps of three ranks.
std::string said(const std::vector<std::string>& dumps) {
    std::vector<RecordedCalls> all;
    for (std::size_t rank = 0; rank < dumps.size(); ++rank)
        for (RecordedCalls& record : read_flight_dump(dumps[rank], static_cast<int>(rank)))
            all.push_back(std::move(record));
    const auto name = [](int rank) { return "rank " + std::to_string(rank); };
    const std::string text = rendezvous::recorded_sentence(put_together(std::move(all)),
                                                           static_cast<int>(dumps.size()), name);
    return text.substr(text.find(", ") + 2);
}
std::string said_of_gloo(const std::string& kind) {
    return said({recorded("gloo_" + kind + ".0.json"), recorded("gloo_" + kind + ".1.json"),
                 recorded("gloo_" + kind + ".2.json")});
}

std::string entry(int number, const std::string& operation, const std::string& more = "") {
    return R"({"collective_seq_id":)" + std::to_string(number) +
           R"(,"process_group":["0","default_pg"],"profiling_name":")" + operation +
           R"(","input_sizes":[[8]],"input_dtypes":["Float"],"retired":false,"is_p2p":false)" +
           more + "}";
}
std::string dump(const std::vector<std::string>& entries) {
    std::string text = R"({"version":"2.10","entries":[)";
    for (const std::string& each : entries) text += (each == entries.front() ? "" : ",") + each;
    return text + "]}";
}

TEST(FlightDump, GlooOneRankInABarrierAndTheOthersInAnAllReduce) {
    EXPECT_EQ(said_of_gloo("mismatch"),
              "call 11 of group 0 (default_pg, gloo) is barrier on rank 1, and all_reduce of "
              "[1048576] Float on rank 0 and rank 2");
}

TEST(FlightDump, GlooOneRankHasNotMadeTheCall) {
    EXPECT_EQ(said_of_gloo("fewer"),
              "rank 1 has not made call 11 of group 0 (default_pg, gloo), all_reduce of [4] Float, "
              "but rank 0 and rank 2 have");
}

// It waits in a barrier of another group, whose other rank has not recorded any call of it.
TEST(FlightDump, GlooOneRankIsInACallOfAnotherGroup) {
    EXPECT_EQ(said_of_gloo("sub"),
              "rank 1 has not made call 11 of group 0 (default_pg, gloo), all_reduce of [4] Float, "
              "but rank 0 and rank 2 have");
    EXPECT_THAT(
        read_flight_dump(recorded("gloo_sub.1.json"), 1),
        ElementsAre(AllOf(Field(&RecordedCalls::group, "group 1 (gloo)"),
                          Field(&RecordedCalls::waits_in, 1),
                          Field(&RecordedCalls::calls, ElementsAre("barrier"))),
                    AllOf(Field(&RecordedCalls::last, 10), Field(&RecordedCalls::waits_in, 0),
                          Field(&RecordedCalls::first, 1))));
}

// NCCL's entries have a state, and are retired only by its watchdog. Coalesced operations are one
// call, and gathers may have other sizes on each rank.
TEST(FlightDump, NcclsEntries) {
    const std::string ended = R"(,"state":"completed")", runs = R"(,"state":"started")";
    const auto rank_0 = read_flight_dump(
        dump({entry(4, "nccl:all_gather", ended), entry(5, "nccl:all_reduce", runs),
              entry(6, "nccl:all_reduce"), entry(6, "nccl:broadcast"),
              entry(3, "nccl:send 0->1", R"(,"is_p2p":true)")}),
        0);
    EXPECT_THAT(rank_0,
                ElementsAre(RecordedCalls{{0},
                                          "group 0 (default_pg, nccl)",
                                          6,
                                          4,
                                          {"all_gather", "all_reduce of [8] Float",
                                           "all_reduce of [8] Float + broadcast of [8] Float"},
                                          5}));
}

// The ring of a recorder has 2000 calls. Told are those around the one in which the worker waits.
TEST(FlightDump, TellsWhatLiesAroundTheCallInWhichItWaits) {
    std::vector<std::string> entries;
    for (int number = 1001; number <= 3000; ++number)
        entries.push_back(
            entry(number, "gloo:all_reduce", number < 2900 ? R"(,"state":"completed")" : ""));
    const auto waiting = read_flight_dump(dump(entries), 3);
    ASSERT_THAT(waiting, SizeIs(1));
    EXPECT_EQ(waiting[0].first, 2892);
    EXPECT_EQ(waiting[0].waits_in, 2900);
    EXPECT_EQ(waiting[0].last, 3000);
    EXPECT_THAT(waiting[0].calls, SizeIs(rendezvous::kCallsTold));
    entries.resize(1800);
    EXPECT_EQ(read_flight_dump(dump(entries), 3)[0].first, 2785) << "the newest ones";
}

// 64 workers of a node do the same, so little has to be told.
TEST(FlightDump, RanksWithTheSameCallsAreToldTogether) {
    std::vector<RecordedCalls> all;
    for (int rank = 63; rank >= 0; --rank)
        all.push_back({{rank}, rank == 7 ? "b" : "a", 1, 1, {"barrier"}, rank == 7 ? 1 : 0});
    const auto together = put_together(all);
    ASSERT_THAT(together, SizeIs(2));
    EXPECT_THAT(together[0].ranks, ElementsAre(7)) << "who waits comes first";
    EXPECT_THAT(together[1].ranks, SizeIs(63));
    EXPECT_EQ(together[1].ranks.front(), 0);
    for (int rank = 0; rank < 500; ++rank)
        all.push_back({{rank}, "c" + std::to_string(rank), 1, 1, {"barrier"}, 0});
    EXPECT_THAT(put_together(all), SizeIs(rendezvous::kRecordsTold));
}

// The text comes from a worker. What is no dump has no calls; what an entry lacks is left out.
TEST(FlightDump, BearsAnyBytes) {
    const std::string whole = recorded("gloo_mismatch.1.json");
    for (std::size_t size = 0; size + 1 < whole.size(); size += 7)
        EXPECT_THAT(read_flight_dump(whole.substr(0, size), 0), IsEmpty()) << size;
    for (
        const char* text :
        {"", "7", "[]", "{}", R"({"entries":7})", R"({"entries":[7,null,[],{}]})", "\x80\x02}q.",
         R"({"entries":[{"collective_seq_id":-1,"process_group":["0",""],"profiling_name":"a:b"}]})",
         R"({"entries":[{"collective_seq_id":1e300,"process_group":["0",""],"profiling_name":"a:b"}]})",
         R"({"entries":[{"collective_seq_id":1,"process_group":[0,1],"profiling_name":"a:b"}]})"})
        EXPECT_THAT(read_flight_dump(text, 0), IsEmpty()) << text;
    EXPECT_THAT(read_flight_dump(std::string(1 << 20, '['), 0), IsEmpty());
    EXPECT_THAT(read_flight_dump(whole + std::string(kLongestDump, ' '), 0), IsEmpty());
    const auto odd = read_flight_dump(
        dump({entry(1, "a\\nb\\u0007:" + std::string(300, 'x'), R"(,"input_sizes":[{}])")}), 0);
    ASSERT_THAT(odd, SizeIs(1));
    EXPECT_EQ(odd[0].group, "group 0 (default_pg, a?b?)");
    EXPECT_EQ(odd[0].calls.front(), std::string(rendezvous::kCallText, 'x'));
}

}  // namespace
}  // namespace ddprun::agent
