#include "rendezvous/service.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <set>
#include <utility>

#include "proto/boot_clock.h"
#include "rendezvous/client.h"
#include "rendezvous/gate.h"
#include "rendezvous/link.h"
#include "rendezvous/wire.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::seconds kFlushTime{2};
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::seconds kReadAgain{1};
constexpr std::size_t kRoom = 256;  // at the gate, and for each node two, since all come at once
constexpr Duration kLeastTick =
    std::chrono::milliseconds{1};  // of a deadline that a Tick has not moved

}  // namespace

struct Service::State : std::enable_shared_from_this<Service::State> {
    State(asio::io_context& loop, std::optional<Acceptor> listener, MachineConfig config,
          Ledger& ledger, Log log, OnClosed on_closed, Secrets* secrets);

    struct Local {
        Deliver deliver;
        bool closed = false;  // by its owner: nothing that is still posted reaches it
    };

    void accept();
    void accepted(error_code error, Link::Socket socket);
    void pause_accepting(error_code error);
    void admit(std::shared_ptr<Link> link, ToLeader first);
    void frame_came(Session session, std::string_view body);
    void link_ended(Session session, const Error& why);

    void step(const Event& event);
    void perform(const Effects& effects);
    void arm();
    void tick();

    void operator()(const Send& send);
    void operator()(const Close& close);
    void operator()(const ReadLedger& read);
    void operator()(const CreateEntry& create);
    void operator()(const Call& call);
    void operator()(const Standby& change);
    void operator()(const Closed& closed);
    void operator()(const Note& note) { log(note); }

    void called(std::int64_t number, const NodeId& node, Called::Outcome outcome,
                const Standing& standing);
    void call_standby();
    void standby_changed() const {
        if (on_standby) on_standby();
    }
    void read_done(const ReadLedger& asked, const Result<std::vector<LedgerEntry>>& entries);
    void end_if_flushed();
    void close_all();
    Session new_session() { return Session{++newest_session}; }

    asio::io_context& loop;
    std::optional<Acceptor> listener;
    Ledger& ledger;
    Log log;
    OnClosed on_closed;
    Secrets* const secrets;
    const Inquire inquire;
    Machine machine;
    Gate gate;
    asio::steady_timer tick_timer;    // for next_deadline()
    asio::steady_timer accept_timer;  // pauses accepting
    asio::steady_timer read_timer;    // before a ledger read is tried again
    asio::steady_timer flush_timer;   // how long the last messages may take
    Time armed = kNever;              // what tick_timer waits for
    std::int64_t newest_session = 0;
    std::map<Session, std::shared_ptr<Link>> links;
    std::map<Session, std::shared_ptr<Local>> locals;
    std::map<std::int64_t, std::unique_ptr<Client>> calls;  // to other services, on their way
    std::int64_t newest_call = 0;
    std::optional<Peer> standby_peer;
    std::unique_ptr<Client> standby;
    std::function<void()> on_standby;
    std::set<std::shared_ptr<Link>> leaving;  // closed by the machine, still flushing
    std::optional<Ending> ending;             // the machine has closed
    bool accept_failing = false;              // said once, until accepting works again
    std::string read_failing;                 // the sentence that was said last
};

Service::State::State(asio::io_context& loop, std::optional<Acceptor> listener,
                      MachineConfig config, Ledger& ledger, Log log, OnClosed on_closed,
                      Secrets* secrets)
    : loop(loop),
      listener(std::move(listener)),
      ledger(ledger),
      log(std::move(log)),
      on_closed(std::move(on_closed)),
      secrets(secrets),
      inquire{{config.run_id, config.self, config.version, config.requeue, {}}},
      machine(config, boot_now()),
      gate(secrets, {config.self, kRoom + 2 * static_cast<std::size_t>(config.limits.max_nodes)},
           this->log,
           [this](std::shared_ptr<Link> link, ToLeader first) {
               admit(std::move(link), std::move(first));
           }),
      tick_timer(loop),
      accept_timer(loop),
      read_timer(loop),
      flush_timer(loop) {}

// ---- connections

void Service::State::accept() {
    if (!listener) return;
    listener->async_accept([weak = weak_from_this()](error_code error, Link::Socket socket) {
        if (const auto self = weak.lock()) self->accepted(error, std::move(socket));
    });
}

void Service::State::accepted(error_code error, Link::Socket socket) {
    if (error == asio::error::operation_aborted || !listener) return;
    if (error && error != asio::error::connection_aborted) return pause_accepting(error);
    if (!error) {
        accept_failing = false;
        gate.take(std::move(socket));
    }
    accept();
}

// Without a descriptor the caller stays in the backlog: trying at once would spin.
void Service::State::pause_accepting(error_code error) {
    if (!accept_failing)
        log({Note::Level::warn,
             "cannot accept connections: " + error.message() + "; trying again"});
    accept_failing = true;
    accept_timer.expires_after(kAcceptPause);
    accept_timer.async_wait([weak = weak_from_this()](error_code aborted) {
        const auto self = weak.lock();
        if (self && !aborted) self->accept();
    });
}

void Service::State::admit(std::shared_ptr<Link> link, ToLeader first) {
    const Session session = new_session();
    const auto weak = weak_from_this();
    Link::Handlers handlers;
    handlers.on_frame = [weak, session](std::string_view body) {
        if (const auto self = weak.lock()) self->frame_came(session, body);
    };
    handlers.on_end = [weak, session](const Error& why) {
        if (const auto self = weak.lock()) self->link_ended(session, why);
    };
    link->promote(kNodeFrameLimit, std::move(handlers));
    links.emplace(session, std::move(link));
    step(Came{session, std::move(first)});
}

void Service::State::frame_came(Session session, std::string_view body) {
    auto message = decode_to_leader(body);
    if (message) return step(Came{session, std::move(*message)});
    const auto link = links.find(session);
    if (link == links.end()) return;
    const Error why(message.error().code(),
                    "from " + link->second->peer() + ": " + message.error().sentence());
    link->second->drop();
    link_ended(session, why);
}

void Service::State::link_ended(Session session, const Error& why) {
    const auto link = links.find(session);
    if (link == links.end()) {  // the machine has closed it before: it flushed, or gave up
        std::erase_if(leaving, [](const auto& one) { return one->is_over(); });
        return end_if_flushed();
    }
    // An end is the machine's to judge; what is no agent link is worth a line, whoever it was.
    const bool stranger = why.code() != ErrorCode::closed;
    log({stranger ? Note::Level::info : Note::Level::debug,
         "connection closed: " + why.sentence()});
    links.erase(link);
    step(ConnectionLost{session});
}

// ---- the machine

void Service::State::step(const Event& event) {
    if (ending) return;
    perform(machine.step(boot_now(), event));
}

void Service::State::perform(const Effects& effects) {
    // A callback (log, on_closed) may destroy the service; this call's self keeps the state to the
    // end.
    const auto self = shared_from_this();
    for (const Effect& effect : effects) std::visit(*this, effect);
    if (!ending) arm();
}

void Service::State::arm() {
    const Time deadline = machine.next_deadline();
    if (deadline == armed) return;
    armed = deadline;
    tick_timer.cancel();
    if (deadline == kNever) return;
    tick_timer.expires_after(std::max(deadline - boot_now(), kLeastTick));
    tick_timer.async_wait([weak = weak_from_this()](error_code aborted) {
        const auto self = weak.lock();
        if (self && !aborted) self->tick();
    });
}

// The two clocks may disagree a little: a Tick is only one when the machine's deadline has really
// come.
void Service::State::tick() {
    const Time was = std::exchange(armed, kNever);
    if (was <= boot_now()) return step(Tick{});
    if (!ending) arm();
}

void Service::State::operator()(const Send& send) {
    if (const auto link = links.find(send.session); link != links.end())
        return link->second->send(encode(send.message));
    const auto local = locals.find(send.session);
    if (local == locals.end()) return;  // lost meanwhile: the machine hears of it
    asio::post(loop, [weak = weak_from_this(), to = local->second, message = send.message] {
        if (!weak.expired() && !to->closed) to->deliver(message);
    });
}

void Service::State::operator()(const Close& close) {
    locals.erase(close.session);
    const auto link = links.find(close.session);
    if (link == links.end()) return;
    leaving.insert(link->second);
    link->second->finish();
    links.erase(link);
}

void Service::State::operator()(const ReadLedger& read) {
    ledger.read(read.from,
                [weak = weak_from_this(), read](Result<std::vector<LedgerEntry>> entries) {
                    if (const auto self = weak.lock()) self->read_done(read, entries);
                });
}

void Service::State::read_done(const ReadLedger& asked,
                               const Result<std::vector<LedgerEntry>>& entries) {
    if (entries) {
        read_failing.clear();
        return step(LedgerRead{*entries});
    }
    if (ending) return;
    if (read_failing != entries.error().sentence())
        log({Note::Level::warn,
             "cannot read the ledger: " + entries.error().sentence() + "; trying again"});
    read_failing = entries.error().sentence();
    read_timer.expires_after(kReadAgain);
    read_timer.async_wait([weak = weak_from_this(), asked](error_code aborted) {
        const auto self = weak.lock();
        if (self && !aborted) (*self)(asked);
    });
}

void Service::State::operator()(const CreateEntry& create) {
    ledger.create(create.entry, [weak = weak_from_this()](LedgerCreated created) {
        if (const auto self = weak.lock()) self->step(created);
    });
}

// ---- other services

void Service::State::operator()(const Call& call) {
    const std::int64_t number = ++newest_call;
    const auto end = [weak = weak_from_this(), number, node = call.peer.node](
                         Called::Outcome outcome, const Standing& standing) {
        if (const auto self = weak.lock()) self->called(number, node, outcome, standing);
    };
    Client::Callbacks callbacks;
    callbacks.on_up = [](const std::string&) {};
    callbacks.on_message = [end](const ToNode& message) {
        const auto* standing = std::get_if<Standing>(&message);
        end(standing ? Called::Outcome::answered : Called::Outcome::reset,
            standing ? *standing : Standing{});
    };
    callbacks.on_lost = [end](const Error& why) {
        end(why.code() == ErrorCode::unavailable ? Called::Outcome::refused
            : why.code() == ErrorCode::timed_out ? Called::Outcome::no_answer
                                                 : Called::Outcome::reset,
            {});
    };
    auto client = std::make_unique<Client>(loop, log, std::move(callbacks), secrets);
    client->connect({{call.peer.address, call.peer.port}}, inquire, boot_now() + call.within, true);
    calls.emplace(number, std::move(client));
}

void Service::State::called(std::int64_t number, const NodeId& node, Called::Outcome outcome,
                            const Standing& standing) {
    const auto self = shared_from_this();
    if (calls.erase(number) > 0) step(Called{node, outcome, standing});
}

void Service::State::operator()(const Standby& change) {
    standby.reset();
    standby_peer = change.peer;
    standby_changed();
    if (standby_peer) call_standby();
}

// It says Inquire, so that it is no silent stranger there, and then nothing more.
void Service::State::call_standby() {
    Client::Callbacks callbacks;
    callbacks.on_up = [weak = weak_from_this()](const std::string&) {
        if (const auto self = weak.lock()) self->standby_changed();
    };
    callbacks.on_message = [](const ToNode&) {};
    callbacks.on_lost = [weak = weak_from_this()](const Error&) {
        const auto self = weak.lock();
        if (!self || !self->standby_peer || self->ending) return;
        self->standby_changed();
        self->call_standby();
    };
    standby = std::make_unique<Client>(loop, log, std::move(callbacks), secrets);
    standby->connect({{standby_peer->address, standby_peer->port}}, inquire, kNever);
}

// ---- the end

void Service::State::operator()(const Closed& closed) {
    if (ending) return;
    ending = closed.ending;
    listener.reset();
    gate.close();
    tick_timer.cancel();
    while (!links.empty()) (*this)(Close{links.begin()->first});
    flush_timer.expires_after(kFlushTime);
    flush_timer.async_wait([weak = weak_from_this()](error_code aborted) {
        const auto self = weak.lock();
        if (!self || aborted) return;
        self->close_all();
        self->end_if_flushed();
    });
    // Posted behind what local sessions are still to be told.
    asio::post(loop, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->end_if_flushed();
    });
}

void Service::State::end_if_flushed() {
    if (!ending || !leaving.empty() || !on_closed) return;
    flush_timer.cancel();
    const auto told = std::exchange(on_closed, nullptr);
    const Ending last = *ending;  // the call may destroy the service
    told(last);
}

void Service::State::close_all() {
    listener.reset();
    gate.close();
    for (const auto& [session, link] : links) link->drop();
    for (const auto& link : leaving) link->drop();
    calls.clear();
    standby_peer.reset();
    standby.reset();
    links.clear();
    leaving.clear();
    locals.clear();
    for (auto* timer : {&tick_timer, &accept_timer, &read_timer, &flush_timer}) timer->cancel();
}

// ---- the face

Service::Service(asio::io_context& loop, std::optional<Acceptor> listener, MachineConfig config,
                 Ledger& ledger, Log log, OnClosed on_closed, Secrets* secrets)
    : state_(std::make_shared<State>(loop, std::move(listener), std::move(config), ledger,
                                     std::move(log), std::move(on_closed), secrets)) {}

Service::~Service() {
    state_->ending.emplace();  // a step that is under way higher up the stack does nothing more
    state_->on_closed = nullptr;
    state_->close_all();
}

void Service::start() {
    listen();
    lead({state_->inquire.as.node, {}, 0});
}

void Service::adopt(Link::Socket socket) {
    if (!state_->ending) state_->gate.take(std::move(socket));
}

std::size_t Service::connections() const { return state_->links.size(); }

void Service::listen() { state_->accept(); }

void Service::lead(const Peer& self) {
    state_->gate.prepare();
    state_->step(Lead{self});
}

bool Service::leads() const {
    return state_->ending || state_->machine.snapshot().phase != Phase::dormant;
}

void Service::heard(const Peer& leader) { state_->step(LeaderHeard{leader}); }

void Service::check_ledger(EntryNumber entry, const NodeId& leader,
                           std::function<void(bool)> done) {
    state_->ledger.read(entry, [=](const Result<std::vector<LedgerEntry>>& entries) {
        done(entries && !entries->empty() && entries->front().number == entry &&
             entries->front().leader == leader);
    });
}

int Service::standby_handle() const {
    return state_->standby ? state_->standby->native_handle() : -1;
}

std::string Service::standby_gone_frame(const NodeId& node) const {
    return state_->standby ? state_->standby->gone_frame(node) : std::string();
}

void Service::on_standby(std::function<void()> changed) { state_->on_standby = std::move(changed); }

Session Service::open_local(Deliver deliver) {
    const Session session = state_->new_session();
    state_->locals.emplace(session,
                           std::make_shared<State::Local>(State::Local{std::move(deliver)}));
    return session;
}

void Service::local_send(Session session, ToLeader message) {
    asio::post(state_->loop,
               [weak = std::weak_ptr(state_), event = Came{session, std::move(message)}] {
                   const auto self = weak.lock();
                   if (self && self->locals.contains(event.session)) self->step(event);
               });
}

void Service::close_local(Session session) {
    const auto local = state_->locals.find(session);
    if (local == state_->locals.end()) return;
    local->second->closed = true;
    asio::post(state_->loop, [weak = std::weak_ptr(state_), session] {
        const auto self = weak.lock();
        if (self && self->locals.erase(session) > 0) self->step(ConnectionLost{session});
    });
}

Snapshot Service::snapshot() const { return state_->machine.snapshot(); }

}  // namespace ddprun::rendezvous
