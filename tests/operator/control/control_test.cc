// The control service over real sockets: a leading service with a secret on a loop of its own
// thread, and operators who have the secret, another one, or something else to say.
#include "operator/control/control.h"

#include <gmock/gmock.h>

#include "tests/operator/control/control_rig.h"

namespace ddprun::rendezvous {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

control::StatusReply status(OperatorConnection& to) {
    Context context;
    control::StatusReply reply;
    const grpc::Status got = to.stub().Status(&context, {}, &reply);
    EXPECT_TRUE(got.ok()) << got.error_message();
    return reply;
}

TEST(Control, TellsAnOperatorForWhomTheJobWaits) {
    Job job;
    auto alice = open(job);
    ASSERT_TRUE(alice) << alice.error();
    const control::StatusReply reply = status(**alice);
    EXPECT_EQ(reply.run_id(), "8812");
    EXPECT_EQ(reply.phase(), "gathering");
    EXPECT_THAT(reply.waiting_for(), HasSubstr("n17: its ddprun has not called"));
    ASSERT_EQ(reply.nodes_size(), 2);
    EXPECT_EQ(reply.nodes(1).state(), "missing");
    Context context;
    control::WhyReply why;
    ASSERT_TRUE((*alice)->stub().Why(&context, {}, &why).ok());
    EXPECT_EQ(why.sentences(0), reply.waiting_for());
    EXPECT_TRUE(job.has_said("alice@login1 is connected with ddpctl"));
}

// The leader's memory is that of this process; the rest comes in the Beats of the nodes.
TEST(Control, SumsUpWhatTheNodesUse) {
    Job job;
    job.n17_comes({.memory = 9, .log_bytes = 4711, .store_operations = 12, .store_waiters = 3});
    auto alice = open(job);
    ASSERT_TRUE(alice) << alice.error();
    ASSERT_TRUE(comes_true([&] { return status(**alice).usage().log_bytes() == 4711; }));
    const control::Usage usage = status(**alice).usage();
    EXPECT_EQ(usage.largest_memory(), 9);
    EXPECT_EQ(usage.store_operations(), 12);
    EXPECT_EQ(usage.store_waiters(), 3);
    EXPECT_GT(usage.leader_memory(), 1 << 20);
}

TEST(Control, RefusesAnotherSecretAndSaysSo) {
    Job job;
    const auto mallory = open(job, given("a secret of others only"));
    ASSERT_FALSE(mallory);
    EXPECT_EQ(mallory.error().code(), ErrorCode::refused);
    EXPECT_THAT(mallory.error().sentence(), HasSubstr("does not have the secret of this job"));
    EXPECT_TRUE(open(job));
}

// Everybody who reaches the port could stop such a job.
TEST(Control, AJobWithoutASecretAnswersNoOperator) {
    Job job(kNoProof);
    const auto alice = open(job, kNoProof);
    ASSERT_FALSE(alice);
    EXPECT_EQ(alice.error().code(), ErrorCode::refused);
    EXPECT_THAT(alice.error().sentence(), HasSubstr("this job has no secret"));
}

TEST(Control, Rule27a_ADormantNodeSaysWhereTheLeaderIs) {
    Job leader, dormant(given(kSecret), false);
    const auto nobody = open(dormant);
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().code(), ErrorCode::timed_out) << "the job answers, and nobody leads";
    EXPECT_THAT(nobody.error().sentence(), HasSubstr("knows no leader now"));
    dormant.hears(leader);
    auto alice = open(dormant);
    ASSERT_TRUE(alice) << alice.error();
    EXPECT_EQ(status(**alice).phase(), "gathering");
}

// The host of the first one is gone, or its ddprun is frozen: it takes the connection, and is
// silent. All of the time that there is would not be enough for its answer.
TEST(Control, ASilentNodeHoldsNobodyUp) {
    asio::io_context loop;
    const auto silent = listener(loop);
    const CallTarget first{"127.0.0.1", silent.local_endpoint().port()};
    Job leader, dormant(given(kSecret), false);
    const auto opened = [&](const Job& second) {
        return OperatorConnection::open(
            {{first, {"127.0.0.1", second.port()}}, given(kSecret), opening()}, 4s);
    };
    EXPECT_TRUE(opened(leader));
    const auto begun = std::chrono::steady_clock::now();
    const auto nobody = opened(dormant);
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().code(), ErrorCode::timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 4s)
        << "it is known before the time is over";
}

TEST(Control, NamesWhereNobodyAnswers) {
    const auto nobody =
        OperatorConnection::open({{{"127.0.0.1", 1}, {"::1", 1}}, given(kSecret), opening()}, 20s);
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().code(), ErrorCode::closed) << "no waiting is needed to know it";
    EXPECT_THAT(nobody.error().sentence(),
                HasSubstr("nobody answers at 127.0.0.1:1 (Connection refused), [::1]:1 ("));
}

// One that refuses does not speak for one that is silent.
TEST(Control, OneWhoIsSilentMayAnswerLater) {
    asio::io_context loop;
    const auto silent = listener(loop);
    const auto nobody =
        OperatorConnection::open({{{"127.0.0.1", 1}, {"127.0.0.1", silent.local_endpoint().port()}},
                                  given(kSecret),
                                  opening()},
                                 300ms);
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(nobody.error().sentence(), HasSubstr("127.0.0.1:1 (Connection refused), "));
}

// The job needs two nodes, and none has come.
TEST(Control, SetsLimitsAndAsksForSnapshots) {
    Job job;
    auto alice = open(job);
    ASSERT_TRUE(alice) << alice.error();
    const auto limits = [&](int min, const std::string& by) {
        Context context;
        control::LimitsRequest request;
        control::Done done;
        request.set_min_nodes(min);
        request.set_by(by);
        return (*alice)->stub().SetLimits(&context, request, &done);
    };
    EXPECT_EQ(limits(1, "").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(limits(-1, "alice").error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status(**alice).min_nodes(), 2);
    EXPECT_TRUE(limits(1, "alice").ok());
    EXPECT_EQ(status(**alice).min_nodes(), 1);
    EXPECT_EQ(status(**alice).max_nodes(), 2) << "what is absent stays";
    Context context, later;
    control::SnapshotRequest request;
    control::Done done;
    request.set_by("alice");
    EXPECT_EQ((*alice)->stub().SnapshotNow(&context, request, &done).error_code(),
              grpc::StatusCode::FAILED_PRECONDITION)
        << "there is no generation yet";
    control::StopRequest stop;
    stop.set_by("alice");
    stop.set_after_snapshot(true);
    ASSERT_TRUE((*alice)->stub().Stop(&later, stop, &done).ok());
    EXPECT_EQ(
        status(**alice).snapshot_asked(),
        "asked for by alice, of the generation that follows; then the job stops, as alice has "
        "asked");
}

// Its ledger does not answer, so it leaves the lead to others. Whoever watches must find them.
TEST(Control, ANodeThatLeadsNoMoreEndsItsWatches) {
    Job job(given(kSecret), true, true);
    job.n17_comes();
    auto alice = open(job);
    ASSERT_TRUE(alice) << alice.error();
    Context context;
    const auto stream = (*alice)->stub().Watch(&context, {});
    control::StatusReply reply;
    ASSERT_TRUE(stream->Read(&reply));
    EXPECT_EQ(reply.phase(), "reading");
    while (stream->Read(&reply)) EXPECT_EQ(reply.phase(), "reading");
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
    Context later;
    EXPECT_EQ((*alice)->stub().Status(&later, {}, &reply).error_code(),
              grpc::StatusCode::UNAVAILABLE);
}

TEST(Control, RefusesWhatCannotBeDoneByName) {
    Job job;
    auto alice = open(job);
    ASSERT_TRUE(alice) << alice.error();
    const auto drain = [&](const std::string& node, const std::string& by) {
        Context context;
        control::DrainRequest request;
        control::Done done;
        request.set_node(node);
        request.set_by(by);
        return (*alice)->stub().Drain(&context, request, &done);
    };
    EXPECT_EQ(drain("n99", "alice").error_code(), grpc::StatusCode::NOT_FOUND);
    const grpc::Status needed = drain("n17", "alice");
    EXPECT_EQ(needed.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(needed.error_message(), HasSubstr("the job needs 2"));
    EXPECT_EQ(drain("n17", "").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(drain(std::string(257, 'n'), "alice").error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    // Above the limit of a request. The connection goes on.
    EXPECT_EQ(drain(std::string(1 << 20, 'n'), "alice").error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
    Context context;
    control::RestartRequest request;
    control::Done done;
    request.set_by("alice");
    request.set_generation(5);
    EXPECT_EQ((*alice)->stub().Restart(&context, request, &done).error_code(),
              grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status(**alice).phase(), "gathering");
}

// One watcher reads, the other never does. Both are told of the end, which an operator asks for.
TEST(Control, TellsWatchersOfTheEnd) {
    Job job;
    auto alice = open(job), bob = open(job);
    ASSERT_TRUE(alice && bob);
    Context reading, idle;
    const auto read = (*alice)->stub().Watch(&reading, {});
    const auto ignored = (*bob)->stub().Watch(&idle, {});
    control::StatusReply reply;
    ASSERT_TRUE(read->Read(&reply));
    EXPECT_EQ(reply.version(), 1);
    EXPECT_FALSE(reply.has_ended());
    Context context;
    control::StopRequest request;
    control::Done done;
    request.set_by("bob@login2\n");
    ASSERT_TRUE((*bob)->stub().Stop(&context, request, &done).ok());
    while (!reply.has_ended() && read->Read(&reply)) {
    }
    EXPECT_EQ(reply.ended().code(), 143);
    EXPECT_EQ(reply.ended().sentence(), "stopped: ddpctl stop by bob@login2\\n")
        << "nobody can begin a line of our log";
    EXPECT_FALSE(read->Read(&reply));
    EXPECT_TRUE(read->Finish().ok());
    EXPECT_TRUE(comes_true([&] { return job.is_closed(); }));
}

// A service may end while operators wait for an answer or watch.
TEST(Control, EndsItsCallsWithTheService) {
    auto job = std::make_unique<Job>();
    auto alice = open(*job);
    ASSERT_TRUE(alice) << alice.error();
    Context context;
    const auto watch = (*alice)->stub().Watch(&context, {});
    control::StatusReply reply;
    ASSERT_TRUE(watch->Read(&reply));
    job.reset();
    EXPECT_FALSE(watch->Read(&reply));
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// They take all places and say nothing. The next one is refused with the reason, and gets a place
// when one of them goes.
TEST(Control, ServesSoManyOperatorsAndRefusesTheOthersByName) {
    Job job;
    asio::io_context loop;
    FileThread files(loop);
    std::vector<std::unique_ptr<Raw>> all;
    for (int i = 0; i < 200; ++i) all.push_back(std::make_unique<Raw>(loop, files, job.port()));
    ASSERT_TRUE(run_until(loop, [&] {
        return std::ranges::all_of(all, [](const auto& one) { return one->told || one->ended; });
    }));
    const auto served = std::ranges::count_if(all, [](const auto& o) { return o->is_served(); });
    EXPECT_EQ(served, 32);
    const auto refused = std::ranges::find_if(all, [](const auto& o) { return o->is_refused(); });
    ASSERT_NE(refused, all.end());
    EXPECT_THAT(std::get<Refused>(*(*refused)->told).sentence, HasSubstr("32 operators"));
    all.clear();
    EXPECT_TRUE(comes_true([&] { return open(job).has_value(); }));
}

// Instead of TLS it sends frames of the agent link, which are no TLS.
TEST(Control, CutsAnOperatorWhoDoesNotSpeakTls) {
    Job job;
    auto alice = open(job);
    ASSERT_TRUE(alice) << alice.error();
    asio::io_context loop;
    FileThread files(loop);
    Raw raw(loop, files, job.port());
    ASSERT_TRUE(run_until(loop, [&] { return raw.is_served(); }));
    raw.link->send(std::string(1000, 'x'));
    EXPECT_TRUE(run_until(loop, [&] { return raw.ended; }));
    EXPECT_TRUE(comes_true([&] { return job.has_said("does not go on with TLS"); }));
    EXPECT_EQ(status(**alice).phase(), "gathering") << "nobody else is harmed";
}

}  // namespace
}  // namespace ddprun::rendezvous
