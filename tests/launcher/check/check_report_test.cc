// The report of a check (--check), from the findings of all nodes. Pure. A test takes a healthy
// job, breaks one thing, and reads the one row that must name it.
#include "launcher/check/check_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using State = CheckRow::State;
constexpr std::int64_t kGiB = 1 << 30;

// A healthy node of a job of `nodes` nodes. Clocks differ by less than a millisecond.
NodeFacts node(int number, int nodes) {
    NodeFacts facts;
    facts.name = "n" + std::to_string(number);
    facts.reached = nodes - 1;
    facts.ledger_mark = 7;
    facts.temporary = "/tmp";
    facts.temporary_free = facts.shared_memory_free = kGiB;
    if (number > 1) facts.clock = {0.0002, 0.0003};
    return facts;
}

// A job of n1, n2, … in which nothing is wrong. Its ledger is in a folder.
CheckedJob job_of(int nodes) {
    CheckedJob job;
    job.run_id = "lab.7.0";
    job.nodes_wanted = nodes;
    job.meeting_place = "n1";
    job.ledger = {rendezvous::LedgerPlace::Kind::directory, "/home/user/.ddprun/lab.7.0.check", {}};
    for (int number = 1; number <= nodes; ++number) {
        job.expected.push_back("n" + std::to_string(number));
        job.nodes.emplace_back(node(number, nodes));
    }
    return job;
}

NodeFacts& at(CheckedJob& job, int number) {
    return *job.nodes.at(static_cast<std::size_t>(number - 1));
}

CheckRow row(const CheckReport& report, const std::string& name) {
    for (const CheckRow& row : report.rows)
        if (row.name == name) return row;
    ADD_FAILURE() << "no row " << name;
    return {};
}

// The findings of one row. All other rows must have none: one fault must not show up twice.
std::vector<std::string> findings(CheckedJob job, const std::string& name) {
    const CheckReport report = make_check_report(std::move(job));
    for (const CheckRow& other : report.rows)
        if (other.name != name) {
            EXPECT_THAT(other.findings, IsEmpty()) << other.name;
        }
    EXPECT_EQ(report.good(), row(report, name).state != State::wrong);
    return row(report, name).findings;
}

// The node `from` does not reach the node `to`, counted from 1 as in their names. Ranks count from
// 0.
void cut(CheckedJob& job, int from, int to, const char* why = "10.0.0.9: no answer within 5 s") {
    at(job, from).unreached.push_back({to - 1, why});
    --at(job, from).reached;
}

// Each row says what was tested, so that "nothing is wrong" can be believed.
TEST(CheckReport, NothingIsWrong) {
    const CheckReport report = make_check_report(job_of(4));
    EXPECT_TRUE(report.good());
    EXPECT_EQ(row(report, "nodes").sentence, "4 of 4 have met at n1");
    EXPECT_EQ(row(report, "network").sentence, "12 of 12 connections between nodes");
    EXPECT_EQ(row(report, "ledger").sentence, "directory:/home/user/.ddprun/lab.7.0.check");
    EXPECT_EQ(row(report, "gpus").state, State::skipped);
    EXPECT_EQ(row(report, "clocks").state, State::good);
    EXPECT_THAT(check_text(report), HasSubstr("ddprun has checked n[1-4] in 0.0 s:\n"));
    EXPECT_THAT(check_text(report), HasSubstr("\nNothing is wrong.\n"));
}

// One node reaches nobody, has no other clock, and needs no ledger. A row without a test is
// skipped, not good.
TEST(CheckReport, OneNode) {
    CheckedJob job = job_of(1);
    job.ledger = {};
    const CheckReport report = make_check_report(job);
    EXPECT_TRUE(report.good());
    for (const char* name : {"network", "ledger", "gpus", "clocks"})
        EXPECT_EQ(row(report, name).state, State::skipped) << name;
}

// Missing nodes are named if Slurm names them, else counted.
TEST(CheckReport, NodesThatDidNotCome) {
    CheckedJob job = job_of(4);
    job.nodes.resize(2);
    at(job, 1).reached = at(job, 2).reached = 1;
    EXPECT_THAT(findings(job, "nodes"), ElementsAre(HasSubstr("n3, n4 did not come in time")));
    job.expected.clear();
    EXPECT_THAT(findings(job, "nodes"), ElementsAre(HasSubstr("2 nodes did not come in time")));
}

// A node that has met and then hangs is another fault than one that never came. Its name is not
// known yet.
TEST(CheckReport, NodeThatDoesNotAnswer) {
    CheckedJob job = job_of(3);
    job.nodes[1].reset();
    EXPECT_THAT(findings(job, "nodes"), ElementsAre(HasSubstr("rank 1: joined, then stopped")));
}

// A cut in both directions is one finding. A cut in one direction says so, since it points at a
// firewall.
TEST(CheckReport, CutBetweenTwoNodes) {
    CheckedJob job = job_of(4);
    cut(job, 2, 3);
    cut(job, 3, 2);
    EXPECT_THAT(
        findings(job, "network"),
        ElementsAre(
            "n2 and n3 do not reach each other: 10.0.0.9: no answer within 5 s; let the nodes of a "
            "job connect to each other on all ports (firewall, routes, --local-addr)"));
    job = job_of(4);
    cut(job, 3, 1);
    EXPECT_THAT(findings(job, "network"), ElementsAre(HasSubstr("n3 does not reach n1: 10.0")));
    EXPECT_EQ(row(make_check_report(job), "network").sentence,
              "11 of 12 connections between nodes");
}

// A node that nobody reaches is one finding, and not one for each of the others. Another cut still
// shows.
TEST(CheckReport, NodeThatNobodyReaches) {
    CheckedJob job = job_of(5);
    for (const int from : {1, 2, 3, 5}) cut(job, from, 4, "n4: unknown host");
    cut(job, 1, 2);
    EXPECT_THAT(findings(job, "network"),
                ElementsAre(HasSubstr("no node reaches n4: n4: unknown host"),
                            HasSubstr("n1 does not reach n2: 10.0.0.9")));
}

// The first node has begun the ledger, so its mark is the right one. n2 sees a local folder of the
// same name, n3 sees none.
TEST(CheckReport, LedgerThatIsNotShared) {
    CheckedJob job = job_of(4);
    at(job, 2).ledger_mark = 8;
    at(job, 3).ledger_mark = 0;
    at(job, 3).ledger_fault = "not seen";
    EXPECT_THAT(findings(job, "ledger"),
                ElementsAre(HasSubstr("n3: not seen; give --ledger="),
                            HasSubstr("n2: this node sees a different folder")));
}

// An error of etcd says itself what to do. n2 reaches another server of the same name.
TEST(CheckReport, EtcdThatIsNotReachedByAll) {
    CheckedJob job = job_of(3);
    job.ledger = {rendezvous::LedgerPlace::Kind::etcd, "ddprun/lab.7.0.check", {{"e1", 2379}}};
    EXPECT_EQ(row(make_check_report(job), "ledger").sentence, "etcd:e1:2379");
    at(job, 2).ledger_mark = 8;
    at(job, 3).ledger_mark = 0;
    at(job, 3).ledger_fault =
        "not seen: etcd e1:2379: Connection refused; check that etcd runs there";
    EXPECT_THAT(
        findings(job, "ledger"),
        ElementsAre("n3: not seen: etcd e1:2379: Connection refused; check that etcd runs there",
                    HasSubstr("n2: this node sees a different etcd than the first node; give")));
}

// A GPU has fallen off the bus on four nodes. Nodes with the same fault stand together, three of
// them by name.
TEST(CheckReport, GpusThatAreMissing) {
    CheckedJob job = job_of(5);
    for (int number = 1; number <= 5; ++number) at(job, number).gpus_given = 4;
    at(job, 1).gpus_shown = 4;
    for (int number = 2; number <= 5; ++number) at(job, number).gpus_shown = 3;
    EXPECT_THAT(findings(job, "gpus"),
                ElementsAre("n2, n3, n4 and 1 more: Slurm gives 4 GPUs, but the driver shows 3; "
                            "exclude the node (--exclude) and tell the site"));
    EXPECT_EQ(row(make_check_report(job), "gpus").sentence, "4 on 5 nodes");
}

// Part of a difference may be the message's way. Only what it cannot explain counts: n3's 2 s came
// with 1.5 s of doubt.
TEST(CheckReport, ClocksApart) {
    CheckedJob job = job_of(3);
    at(job, 2).clock = {-90.0, 0.001};
    at(job, 3).clock = {2.0, 1.5};  // a slow answer, and no wrong clock
    EXPECT_THAT(findings(job, "clocks"),
                ElementsAre(HasSubstr("n2: the clock is 90.0 s ahead of the first node's")));
    at(job, 2).clock = {3.0, 0.5};
    EXPECT_THAT(findings(job, "clocks"), ElementsAre(HasSubstr("n2: the clock is 2.5 s behind")));
}

// A full /tmp and a small /dev/shm make workers fail with errors that do not name the cause.
TEST(CheckReport, SpaceAndLimits) {
    CheckedJob job = job_of(2);
    at(job, 2).temporary_free = 0;
    // The default of a container.
    at(job, 2).shared_memory_free = 64 << 20;
    EXPECT_THAT(findings(job, "space"),
                testing::UnorderedElementsAre(HasSubstr("n2: /tmp has 0 MiB free; set TMPDIR"),
                                              HasSubstr("n2: /dev/shm has 64 MiB free")));
    job = job_of(2);
    at(job, 1).locked_memory = 65536;  // without RDMA little memory is locked
    EXPECT_THAT(findings(job, "limits"), IsEmpty());
    at(job, 1).rdma = true;
    at(job, 2).open_files = 256;
    EXPECT_THAT(findings(job, "limits"), ElementsAre(HasSubstr("n1: RLIMIT_MEMLOCK is 64 KiB"),
                                                     HasSubstr("n2: RLIMIT_NOFILE is 256")));
    job = job_of(2);
    at(job, 2).program_fault = "program train: not found in PATH; give its path";
    EXPECT_THAT(findings(job, "workers"),
                ElementsAre("n2: program train: not found in PATH; give its path"));
}

// A whole rack is off. The text stops after 20 lines, so that the user still sees the rest of the
// report. The JSON has all.
TEST(CheckReport, ManyFindings) {
    CheckedJob job = job_of(40);
    for (int number = 2; number <= 40; ++number) cut(job, number, 1 + number % 40);
    const CheckReport report = make_check_report(job);
    EXPECT_THAT(check_text(report), HasSubstr("and 19 more (--check=json has all)"));
    EXPECT_THAT(check_text(report), HasSubstr("39 things are wrong."));
    EXPECT_THAT(check_json(report), HasSubstr("n40 does not reach n1"));
    EXPECT_THAT(check_json(report), HasSubstr("\"good\": false"));
}

// Cold starts are no fault. The reason is told, and what a server would save.
TEST(CheckReport, WarmStarts) {
    CheckedJob job = job_of(2);
    EXPECT_EQ(row(make_check_report(job), "warm").state, State::skipped);
    at(job, 1).warm.emplace().cold = "the interpreter does not read it";
    EXPECT_EQ(row(make_check_report(job), "warm").state, State::skipped);
    EXPECT_EQ(row(make_check_report(job), "warm").sentence,
              "cold starts, because the interpreter does not read it");
    at(job, 1).warm = {"", 2000, 2100, 1};
    EXPECT_EQ(row(make_check_report(job), "warm").state, State::good);
    EXPECT_EQ(row(make_check_report(job), "warm").sentence,
              "a server can import 2000 modules; a cold worker reads 2100 files for them, with 1 "
              "look for files; with the server that happens once on a node");
    EXPECT_TRUE(make_check_report(job).good());
}

// The site's own delay is no fault.
TEST(CheckReport, RequeueDelayIsNamed) {
    CheckedJob job = job_of(2);
    EXPECT_EQ(row(make_check_report(job), "requeue").state, State::skipped);
    at(job, 1).requeue_delay = 121;
    EXPECT_THAT(row(make_check_report(job), "requeue").sentence,
                HasSubstr("holds a requeued job for 121 s; --requeue-begin"));
    EXPECT_THAT(findings(job, "requeue"), IsEmpty());
}

// A node writes its findings into the store, and the first node reads them. Reasons may hold any
// bytes; what is no text arrives with a replacement character.
TEST(CheckFacts, ThereAndBack) {
    NodeFacts facts = node(3, 8);
    facts.unreached = {{4, "why"}, {5, "\xff not text"}};
    facts.gpus_given = 8;
    facts.gpu_faults = {"/dev/nvidia3: no"};
    facts.locked_memory = 1;
    facts.warm = {"", 1, 2, 3};
    facts.requeue_delay = 121;
    const auto read = facts_from_json(to_json(facts));
    ASSERT_TRUE(read) << read.error();
    facts.unreached[1].why = "\xef\xbf\xbd not text";
    EXPECT_EQ(*read, facts);
    EXPECT_EQ(facts_from_json(to_json(NodeFacts{})).value(), NodeFacts{});
    for (const char* bad : {"", "{}", "[]", "{\"name\": 1}"})
        EXPECT_EQ(facts_from_json(bad).error().code(), ErrorCode::malformed) << bad;
}

// Each node begins with its neighbour. If all began with rank 0, it would get a thousand calls at
// once.
TEST(CheckFacts, PeersOfEach) {
    EXPECT_THAT(peers_of(0, 4), ElementsAre(1, 2, 3));
    EXPECT_THAT(peers_of(2, 4), ElementsAre(3, 0, 1));
    EXPECT_THAT(peers_of(0, 1), IsEmpty());
}

}  // namespace
}  // namespace ddprun::launcher
