// For the tests of what operators ask, over real sockets: a service with a secret on a loop of its
// own thread, and operators.
#pragma once

#include <atomic>
#include <boost/asio/post.hpp>
#include <functional>
#include <future>
#include <thread>

#include "base/loop/run_loop_until.h"
#include "base/system/random_bytes.h"
#include "operator/control/operator_connection.h"
#include "operator/control/operators.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/link/node_handshake.h"
#include "rendezvous/service/service.h"
#include "rendezvous/wire/wire.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {

using namespace std::chrono_literals;

inline const std::string kSecret = "a secret of all nodes";
inline IdentityConfig given(const std::string& secret) {
    return {IdentityMode::automatic, secret, ""};
}
inline const IdentityConfig kNoProof{IdentityMode::none};

inline Operate opening(bool this_node = false) {
    return {{"", {"alice@login1", Incarnation{random_number()}}, "0.1.0", 0, {}}, 0, this_node};
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
            identity.mode == IdentityMode::none ? nullptr : &secrets_, Operators::make);
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
    void n17_comes(const Usage& usage = {}) {
        on_loop([this, usage] {
            const Session session = service_->open_local([](const ToNode&) {});
            service_->local_send(session, Hello{"8812", {"n17", Incarnation{7}}, "0.1.0", 0});
            Offer offer;
            offer.address = "127.0.0.1";
            offer.service_port = 1;
            service_->local_send(session, Join{offer, Beat{.number = 1, .usage = usage}});
        });
    }
    void serves(std::optional<OwnWorkers> workers) {
        on_loop([&] { service_->serve_workers(std::move(workers)); });
    }
    bool has_visitors() {
        bool has = false;
        on_loop([&] { has = service_->has_visitors(); });
        return has;
    }
    // Its loop ends, as at the end of a job, and then it waits for who visits it.
    void leaves() {
        on_loop([this] { loop_.stop(); });
        thread_.join();
        run_loop_until(
            loop_, [this] { return !service_->has_visitors(); }, std::chrono::milliseconds{500});
        loop_.restart();
        thread_ = std::thread([this] { loop_.run(); });
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

inline auto open(const Job& job, const IdentityConfig& identity = given(kSecret)) {
    return OperatorConnection::open({{{"127.0.0.1", job.port()}}, identity, opening()}, 20s);
}

// For its own workers, whoever leads.
inline auto visit(const Job& job, const IdentityConfig& identity = given(kSecret)) {
    return OperatorConnection::open({{{"127.0.0.1", job.port()}}, identity, opening(true)}, 20s);
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

}  // namespace ddprun::rendezvous
