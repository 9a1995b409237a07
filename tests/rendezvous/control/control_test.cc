// The control service over real sockets: a leading service with a secret on a loop of its own
// thread, and operators who have the secret, another one, or something else to say.
#include "rendezvous/control/control.h"

#include <gmock/gmock.h>

#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "base/system/random_bytes.h"
#include "rendezvous/control/operator_connection.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/link/node_handshake.h"
#include "rendezvous/service/service.h"
#include "rendezvous/wire/wire.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kSecret = "a secret of all nodes";
IdentityConfig given(const std::string& secret) { return {IdentityMode::automatic, secret, ""}; }
const IdentityConfig kNoProof{IdentityMode::none};

Operate opening() {
    return {{"", {"alice@login1", Incarnation{random_number()}}, "0.1.0", 0, {}}, 0};
}

// A ledger that may stop answering.
class FickleLedger : public Ledger {
  public:
    explicit FickleLedger(asio::io_context& loop) : memory_(loop) {}
    void read(EntryNumber from, ReadDone done) override {
        if (!is_silent) memory_.read(from, std::move(done));
    }
    void create(LedgerEntry entry, CreateDone done) override {
        memory_.create(std::move(entry), std::move(done));
    }
    void look(EntryNumber from, LookDone done) override { memory_.look(from, std::move(done)); }
    std::string name() const override { return memory_.name(); }
    bool is_silent = false;  // set before the job begins

  private:
    LedgerMemory memory_;
};

// A service of a job of two nodes, n16 and n17, that never come. Its loop runs in a thread.
class Job {
  public:
    explicit Job(const IdentityConfig& identity = given(kSecret), bool leads = true,
                 bool ledger_is_silent = false)
        : ledger_(loop_), files_(loop_), secrets_(loop_, files_, identity) {
        MachineConfig config;
        config.run_id = "8812";
        config.self = {"n16", Incarnation{1000}};
        config.version = "0.1.0";
        config.limits.min_nodes = config.limits.max_nodes = 2;
        config.limits.order = {"n16", "n17"};
        config.limits.times.lease = ledger_is_silent ? 1s : 10s;
        config.succession = true;
        config.seed = 1;
        ledger_.is_silent = ledger_is_silent;
        auto acceptor = listener(loop_);
        port_ = acceptor.local_endpoint().port();
        service_.emplace(
            loop_, std::move(acceptor), config, ledger_, [this](const Note& note) { say(note); },
            [this](const Ending&) { is_closed_ = true; },
            identity.mode == IdentityMode::none ? nullptr : &secrets_);
        leads ? service_->start() : service_->listen();
        thread_ = std::thread([this] { loop_.run(); });
    }
    ~Job() {
        on_loop([this] { service_.reset(); });
        work_.reset();
        loop_.stop();
        thread_.join();
    }
    // Runs it on the loop and waits for it.
    void on_loop(const std::function<void()>& run) {
        std::promise<void> done;
        asio::post(loop_, [&] {
            run();
            done.set_value();
        });
        done.get_future().wait();
    }
    void hears(const Job& leader) {
        on_loop([&] { service_->heard({{"n17", Incarnation{7}}, "127.0.0.1", leader.port_}); });
    }
    // n17 calls, and can lead, too.
    void n17_comes() {
        on_loop([this] {
            const Session session = service_->open_local([](const ToNode&) {});
            service_->local_send(session, Hello{"8812", {"n17", Incarnation{7}}, "0.1.0", 0});
            Offer offer;
            offer.address = "127.0.0.1";
            offer.service_port = 1;
            service_->local_send(session, Join{offer, Beat{.number = 1}});
        });
    }
    std::uint16_t port() const { return port_; }
    bool is_closed() const { return is_closed_; }
    bool has_said(const std::string& part) {
        const std::lock_guard held(lock_);
        return lines_.has(part);
    }

  private:
    void say(const Note& note) {
        const std::lock_guard held(lock_);
        lines_.log()(note);
    }
    asio::io_context loop_;
    asio::executor_work_guard<asio::io_context::executor_type> work_{loop_.get_executor()};
    FickleLedger ledger_;
    FileThread files_;
    Secrets secrets_;
    std::mutex lock_;
    Lines lines_;
    std::uint16_t port_ = 0;
    std::optional<Service> service_;
    std::atomic<bool> is_closed_ = false;
    std::thread thread_;
};

auto open(const Job& job, const IdentityConfig& identity = given(kSecret)) {
    return OperatorConnection::open({{{"127.0.0.1", job.port()}}, identity, opening()}, 20s);
}

// A call with a deadline that no healthy test needs.
struct Context : grpc::ClientContext {
    Context() { set_deadline(std::chrono::system_clock::now() + 20s); }
};

template <class Condition>
bool comes_true(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!condition() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(5ms);
    return condition();
}

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

TEST(Control, ADormantNodeSaysWhereTheLeaderIs) {
    Job leader, dormant(given(kSecret), false);
    const auto nobody = open(dormant);
    ASSERT_FALSE(nobody);
    EXPECT_THAT(nobody.error().sentence(), HasSubstr("knows no leader now"));
    dormant.hears(leader);
    auto alice = open(dormant);
    ASSERT_TRUE(alice) << alice.error();
    EXPECT_EQ(status(**alice).phase(), "gathering");
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
              grpc::StatusCode::UNAVAILABLE)
        << "no generation runs";
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
    EXPECT_EQ(reply.ended().sentence(), "stopped by bob@login2\\n with ddpctl")
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

// An operator who has proved himself, and then does what the test wants.
struct Raw {
    explicit Raw(asio::io_context& loop, FileThread& files, std::uint16_t port)
        : secrets(loop, files, given(kSecret)) {
        tcp::socket to(loop);
        to.connect({asio::ip::address_v4::loopback(), port});
        link = std::make_shared<Link>(
            std::move(to), kLeaderFrameLimit,
            Link::Handlers{[this](std::string_view body) { handshake->take(body); },
                           [this](const Error&) { ended = true; }});
        handshake.emplace(
            secrets, link, opening(), true,
            NodeHandshake::Handlers{[this](std::string_view body) { told = *decode_to_node(body); },
                                    [this](const Error&) { ended = true; }});
        link->start(Duration{0});
        handshake->start();
    }
    ~Raw() { link->drop(); }
    bool is_served() const { return told && std::holds_alternative<Standing>(*told); }
    bool is_refused() const { return told && std::holds_alternative<Refused>(*told); }
    Secrets secrets;
    std::shared_ptr<Link> link;
    std::optional<NodeHandshake> handshake;
    std::optional<ToNode> told;
    bool ended = false;
};

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
