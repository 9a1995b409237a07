// The shell around the rendezvous machine: its events and effects, its timer, ledger calls, and the
// end of the job.
#include "rendezvous/service/service.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <utility>
#include <vector>

#include "base/loop/accept_loop.h"
#include "base/system/boot_clock.h"
#include "base/system/resident_memory.h"
#include "rendezvous/link/link.h"
#include "rendezvous/service/gate.h"
#include "rendezvous/service/ledger_calls.h"
#include "rendezvous/service/neighbours.h"
#include "rendezvous/service/sessions.h"
#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/wire.h"
#include "store/door/socket_user.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// A node reports that it has the end when its own output is written, for which it takes up to 5 s.
constexpr std::chrono::seconds kFlushTime{6};
// At the gate, besides two for each node, since all come at once.
constexpr std::size_t kRoom = 256;
// The shortest wait for a deadline. It keeps a deadline that a Tick has not moved from spinning.
constexpr Duration kLeastTick = std::chrono::milliseconds{1};

// A text that is no address names no socket of ours.
store::SocketUsers::Endpoint endpoint_of(const std::string& address, std::uint16_t port) {
    error_code error;
    return {asio::ip::make_address(address, error), port};
}

// Asks the kernel of this host whose connections to the workers' store these are.
Owners owners_of(store::SocketUsers& users, const AskOwners& asked) {
    std::vector<store::Ends> ends;
    for (const SocketEnds& socket : asked.sockets)
        ends.emplace_back(endpoint_of(socket.from, socket.from_port),
                          endpoint_of(socket.to, socket.to_port));
    return {asked.number, users.owners(ends)};
}

}  // namespace

struct Service::State : std::enable_shared_from_this<Service::State> {
    State(asio::io_context& loop, std::optional<Acceptor> listener, MachineConfig config,
          Ledger& ledger, Log log, OnClosed on_closed, Secrets* secrets,
          const MakeOperatorDesk& make_desk);

    void step(const Event& event);
    void hear(const Event& event) {
        const auto self = shared_from_this();  // an event may destroy the service
        step(event);
    }
    void perform(const Effects& effects);
    void arm();
    void tick();

    void operator()(const Send& send) { sessions.send(send.session, send.message); }
    void operator()(const Close& close) { sessions.close(close.session); }
    void operator()(const ReadLedger& read) { ledger_calls.read(read); }
    void operator()(const CreateEntry& create) { ledger_calls.create(create); }
    void operator()(const LookLedger& look) { ledger_calls.look(look); }
    void operator()(const Call& call) { neighbours.call(call); }
    void operator()(const LookUpOwners& look);
    void operator()(const Standby& change) { neighbours.stand_by(change.peer); }
    void operator()(const Requeue&);
    void operator()(const AskNodeStates& ask);
    void operator()(const Answered& said) { answered = said; }
    void operator()(const Closed& closed);
    void operator()(const Note& note) { log(note); }

    void end_if_flushed();
    void close_all();
    void admit(std::shared_ptr<Link> link, ToLeader first);
    Answered operate(const std::string& by, const OperatorAction& action);
    JobStatus status() const;

    asio::io_context& loop;
    std::optional<AcceptLoop> accept_loop;
    Ledger& ledger;
    Log log;
    OnClosed on_closed;
    const NodeId node;
    const bool is_single;  // a job of one node
    Machine machine;
    std::unique_ptr<OperatorDesk> operators;  // null: nobody serves them
    std::optional<Answered> answered;  // of the operator's event that is under way
    std::function<Usage()> own_usage;  // of this node; may be empty
    Sessions sessions;
    Gate gate;
    Neighbours neighbours;
    LedgerCalls ledger_calls;
    std::optional<store::SocketUsers> socket_users;  // when somebody has asked
    asio::steady_timer tick_timer;                   // for the machine's next_deadline()
    asio::steady_timer flush_timer;                  // limit for the last messages
    Time armed = kNever;                             // what tick_timer waits for
    std::optional<Ending> ending;                    // set when the machine has closed the job
    std::function<void(const Requeue&, std::function<void()>)> on_requeue;
    std::function<void(std::vector<std::string>, std::function<void(Service::NodeStates)>)> on_ask;
};

Service::State::State(asio::io_context& loop, std::optional<Acceptor> listener,
                      MachineConfig config, Ledger& ledger, Log log, OnClosed on_closed,
                      Secrets* secrets, const MakeOperatorDesk& make_desk)
    : loop(loop),
      ledger(ledger),
      log(std::move(log)),
      on_closed(std::move(on_closed)),
      node(config.self),
      is_single(config.limits.max_nodes == 1 && !config.outside),
      machine(config, boot_now()),
      sessions(loop, this->log,
               {[this](const Event& event) { hear(event); },
                [this] {
                    const auto self = shared_from_this();
                    end_if_flushed();
                }}),
      gate(secrets, {config.self, kRoom + 2 * static_cast<std::size_t>(config.limits.max_nodes)},
           this->log,
           [this](std::shared_ptr<Link> link, ToLeader first) {
               admit(std::move(link), std::move(first));
           }),
      neighbours(loop, this->log, {config.run_id, config.self, config.version, config.requeue, {}},
                 secrets, [this](const Called& called) { hear(called); }),
      ledger_calls(loop, ledger, [this](const Event& event) { hear(event); }),
      tick_timer(loop),
      flush_timer(loop) {
    if (make_desk)
        operators = make_desk(loop, this->log, config.to_day,
                              {[this]() -> std::optional<JobStatus> {
                                   if (!machine.leads()) return std::nullopt;
                                   return status();
                               },
                               [this](const std::string& by, const OperatorAction& action) {
                                   return operate(by, action);
                               }});
    if (!listener) return;
    accept_loop.emplace(
        std::move(*listener),
        [this](Link::Socket socket, const auto&) {
            const auto self = shared_from_this();
            gate.take(std::move(socket));
        },
        [this](const std::string& why) {
            this->log({Note::Level::warn, "cannot accept connections: " + why});
        });
}

void Service::State::admit(std::shared_ptr<Link> link, ToLeader first) {
    const auto* who = std::get_if<Operate>(&first);
    const bool leads = machine.leads();
    // A dormant machine says where the leader is.
    if (who && !operators) {
        link->promote(kNodeFrameLimit, {[](std::string_view) {}, [](const Error&) {}});
        link->send(encode(ToNode(Refused{"nobody serves operators here"})));
        return link->finish();
    }
    if (who && (leads || who->this_node))
        return operators->take(link, *who, {node, leads, ledger.mark()});
    sessions.admit(std::move(link), std::move(first));
}

// The machine answers in the same step. After the end of the job it hears nothing more.
Answered Service::State::operate(const std::string& by, const OperatorAction& action) {
    answered = {OperatorAnswer::already, "the job has ended"};
    step(Operated{by, action});
    return *std::exchange(answered, std::nullopt);
}

// What the machine does not see: this process, and in a job of one node, which sends no regular
// Beats, what it uses now.
JobStatus Service::State::status() const {
    JobStatus job = machine.status(boot_now());
    if (is_single && own_usage) {
        job.usage = {};
        job.usage.add(own_usage());
    }
    job.usage.leader_memory = resident_memory();
    return job;
}

// All events pass through here. After the end the machine hears nothing more.
void Service::State::step(const Event& event) {
    if (ending) return;
    perform(machine.step(boot_now(), event));
}

void Service::State::perform(const Effects& effects) {
    // A callback (log, on_closed) may destroy the service; `self` keeps the state alive until this
    // call is over.
    const auto self = shared_from_this();
    for (const Effect& effect : effects) std::visit(*this, effect);
    if (!ending) arm();
}

// One timer is enough, because the machine names its earliest deadline.
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

// The timer's clock and the boot clock may differ a little. A Tick is sent only when the machine's
// deadline has really come.
void Service::State::tick() {
    const Time was = std::exchange(armed, kNever);
    if (was <= boot_now()) return step(Tick{});
    if (!ending) arm();
}

// An asker has one question open at a time, and the kernel answers one of 256 sockets within about
// a millisecond. Where it has no socket diagnostics, the time is bounded
// (store/door/socket_user.h).
void Service::State::operator()(const LookUpOwners& look) {
    if (!socket_users) socket_users.emplace(::geteuid());
    sessions.send(look.session, owners_of(*socket_users, look.asked));
}

void Service::State::operator()(const AskNodeStates& ask) {
    if (!on_ask) return;
    // Posted, because the machine must not be entered twice.
    asio::post(loop, [weak = weak_from_this(), hosts = ask.hosts] {
        const auto self = weak.lock();
        if (!self) return;
        self->on_ask(hosts, [weak](Service::NodeStates said) {
            if (const auto here = weak.lock()) here->step(OutOfService{std::move(said)});
        });
    });
}

// Requeues the job. Without Slurm there is nothing to do, and the machine goes on at once.
void Service::State::operator()(const Requeue& wanted) {
    const auto done = [weak = weak_from_this()] {
        if (const auto self = weak.lock(); self && !self->ending) self->step(Requeued{});
    };
    const auto requeue = [weak = weak_from_this(), wanted, done] {
        const auto self = weak.lock();
        if (!self) return;
        self->on_requeue ? self->on_requeue(wanted, done) : done();
    };
    asio::post(loop, requeue);  // posted: the machine must not be entered twice
}

// The job has ended. The connections stay open (sessions.h), because a node takes their end for
// the sign to leave.
void Service::State::operator()(const Closed& closed) {
    if (ending) return;
    ending = closed.ending;
    accept_loop.reset();
    gate.close();
    ledger_calls.close();
    tick_timer.cancel();
    sessions.finish();
    if (operators) operators->ended(closed.ending);
    flush_timer.expires_after(kFlushTime);
    flush_timer.async_wait([weak = weak_from_this()](error_code aborted) {
        const auto self = weak.lock();
        if (!self || aborted) return;
        self->sessions.give_up_leaving();
        self->end_if_flushed();
    });
    // Posted, so that it comes after the messages that local sessions still get. A job without
    // connections ends here.
    asio::post(loop, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->end_if_flushed();
    });
}

void Service::State::end_if_flushed() {
    if (!ending || !sessions.all_left() || !on_closed) return;
    flush_timer.cancel();
    const auto told = std::exchange(on_closed, nullptr);
    const Ending last = *ending;  // the call may destroy the service
    told(last);
}

// For the destructor: cuts everything, calls nobody.
void Service::State::close_all() {
    accept_loop.reset();
    gate.close();
    if (operators) operators->close();
    sessions.cut();
    neighbours.close();
    ledger_calls.close();
    for (auto* timer : {&tick_timer, &flush_timer}) timer->cancel();
}

// The public class only holds the state; handlers hold it weakly.
Service::Service(asio::io_context& loop, std::optional<Acceptor> listener, MachineConfig config,
                 Ledger& ledger, Log log, OnClosed on_closed, Secrets* secrets,
                 const MakeOperatorDesk& make_desk)
    : state_(std::make_shared<State>(loop, std::move(listener), std::move(config), ledger,
                                     std::move(log), std::move(on_closed), secrets,
                                     make_desk)) {}

Service::~Service() {
    state_->ending.emplace();  // a step that is still on the call stack does nothing more
    state_->on_closed = nullptr;
    state_->close_all();
}

void Service::start() {
    listen();
    lead({state_->node, {}, 0});
}

void Service::newer_allocation(int restart_count) { state_->step(LedgerLooked{0, restart_count}); }

void Service::admit(std::shared_ptr<Link> link, ToLeader first) {
    if (state_->ending || link->is_over()) return link->drop();
    state_->admit(std::move(link), std::move(first));
}

std::size_t Service::connections() const {
    return state_->sessions.connections() + state_->gate.callers();
}

void Service::listen() {
    if (state_->accept_loop) state_->accept_loop->start();
}

void Service::lead(const Peer& self) {
    // The secret may take a while (munge, a file), so the search for it starts now. In a job of one
    // node only operators need it, and they can wait.
    if (!state_->is_single) state_->gate.prepare();
    state_->step(Lead{self, state_->ledger.name(), state_->ledger.mark()});
}

bool Service::leads() const {
    return state_->ending || state_->machine.leads();
}

void Service::heard(const Peer& leader) { state_->step(LeaderHeard{leader}); }

void Service::serve_workers(std::optional<OwnWorkers> workers) {
    state_->own_usage = workers ? workers->usage : nullptr;
    if (state_->operators) state_->operators->serve_workers(std::move(workers));
}

bool Service::has_visitors() const {
    return state_->operators && state_->operators->has_visitors();
}

int Service::standby_handle() const { return state_->neighbours.standby_handle(); }

std::string Service::standby_gone_frame(const NodeId& node) const {
    return state_->neighbours.standby_gone_frame(node);
}

void Service::on_requeue(std::function<void(const Requeue&, std::function<void()>)> requeue) {
    state_->on_requeue = std::move(requeue);
}

void Service::on_ask_node_states(
    std::function<void(std::vector<std::string>, std::function<void(NodeStates)>)> ask) {
    state_->on_ask = std::move(ask);
}

void Service::on_standby(std::function<void()> changed) {
    state_->neighbours.on_standby(std::move(changed));
}

Session Service::open_local(Deliver deliver) {
    return state_->sessions.open_local(std::move(deliver));
}

void Service::local_send(Session session, ToLeader message) {
    state_->sessions.local_send(session, std::move(message));
}

void Service::close_local(Session session) { state_->sessions.close_local(session); }

Snapshot Service::snapshot() const { return state_->machine.snapshot(); }

JobStatus Service::status() const { return state_->status(); }

}  // namespace ddprun::rendezvous
