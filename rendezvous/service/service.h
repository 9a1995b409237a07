// A node's service, leading or dormant: keeps the nodes' connections, feeds the machine, performs
// its effects in order, holds the one timer. It decides nothing.
//
//   listener ─accept─▶ Gate ─admitted─▶ Link (wire.h) ─Came─▶ Machine ─Effects─▶ Link::send, Ledger,
//                                                                                log, on_closed
//   the leader's own node ─local_send─▶ (posted) ─────Came─▶  Machine ─Effects─▶ (posted) deliver
//
// What a peer does harms nobody else: who has not proved to be of this job's user stays at the gate
// (gate.h); garbage closes that connection with one line of the log; one that does not read is
// closed when 64 MiB wait for it; accept errors (no descriptor left) pause accepting and go on. A
// ledger read that fails is said in the log and repeated each second: the machine's deadlines
// decide how long.
//
// Thread: the loop's, all of it. `loop` and `ledger` must outlive the service. It may be destroyed
// at any time, within its own callbacks too: connections are cut then and no callback comes any
// more.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "rendezvous/ledger/ledger.h"
#include "rendezvous/machine/machine.h"

namespace ddprun::rendezvous {

class Secrets;

class Service {
  public:
    using Acceptor = boost::asio::ip::tcp::acceptor;
    using Deliver = std::function<void(const ToNode&)>;
    using OnClosed = std::function<void(const Ending&)>;

    // `listener` is bound and listening, or none (a job of one node). `on_closed` is called once,
    // on the loop, when the machine has closed the job and every node is ready to leave, 6 s later
    // at the latest. Their connections end with the service, so that all leave when it goes.
    // `secrets`, if any, outlive the service; without, nobody has to prove
    // anything.
    Service(boost::asio::io_context& loop, std::optional<Acceptor> listener, MachineConfig config,
            Ledger& ledger, Log log, OnClosed on_closed, Secrets* secrets = nullptr);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    void start();   // listen, and lead at once
    void listen();  // as a dormant service: it leads when it is told to
    void lead(const Peer& self);
    bool leads() const;  // it does, or has led to the end
    // The leader that the own node hears; callers are sent there.
    void heard(const Peer& leader);

    // The socket of the link to who leads next, for the keeper's last word; -1: none. `changed` is
    // called whenever it is another.
    int standby_handle() const;
    std::string standby_gone_frame(const NodeId& node) const;  // to write there
    void on_standby(std::function<void()> changed);

    // Who puts the job back into Slurm's queue; it calls `done` when it has, or could not. Called on
    // the loop, at most once. Without one nothing is done.
    void on_requeue(std::function<void(std::function<void()> done)> requeue);

    // Who asks Slurm which of these hosts are out of service, and hands on what it says, if it does.
    // Called on the loop. Without one nothing is asked.
    using NodeStates = std::map<std::string, std::string>;
    void on_ask_node_states(
        std::function<void(std::vector<std::string> hosts, std::function<void(NodeStates)> said)>
            ask);

    // A node that somebody else has accepted, with nothing read from its connection yet. Closed at
    // once when the job has ended.
    void adopt(boost::asio::ip::tcp::socket socket);
    std::size_t connections() const;  // those at the gate, too

    // The leader's own node joins without a socket. `deliver` is called on the loop, never from
    // within a call here; after close_local() or a Close by the machine it is not called any more.
    Session open_local(Deliver deliver);
    void local_send(Session session, ToLeader message);  // posted; order is kept
    void close_local(Session session);                   // posted; to the machine a lost connection

    Snapshot snapshot() const;

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
