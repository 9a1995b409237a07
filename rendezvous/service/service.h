// A node's rendezvous service, leading or dormant. It keeps the connections to the nodes, feeds the
// machine, performs the machine's effects in order, and holds the only timer. It decides nothing.
//
//  listener ─accept─▶ Gate ─admitted─▶ Link (wire.h) ─Came─▶ Machine ─Effects─▶ Link::send, Ledger,
//                                                                               log, on_closed
//                      └─ an operator ─▶ Operators (operator/control) ─Operated─▶ Machine
//  the leader's own node ─local_send─▶ (posted) ─────Came─▶  Machine ─Effects─▶ (posted) deliver
//
// A bad peer affects nobody else. A caller without proof stays at the gate (gate.h). Garbage closes
// that connection, with one log line. A peer that does not read is closed when 64 MiB wait for it.
// Accept errors (no descriptor left) pause accepting. A failed read of the ledger is logged and
// repeated each second; the machine's deadlines decide for how long.
//
// Thread: the loop's, all of it. `loop` and `ledger` must outlive the service. It may be destroyed
// at any time, also within its own callbacks: the connections are cut, and no callback comes any
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
#include "rendezvous/link/operator_desk.h"
#include "rendezvous/machine/machine.h"
#include "rendezvous/model/own_workers.h"

namespace ddprun::rendezvous {

class Link;
class Secrets;

class Service {
  public:
    using Acceptor = boost::asio::ip::tcp::acceptor;
    using Deliver = std::function<void(const ToNode&)>;
    using OnClosed = std::function<void(const Ending&)>;

    // `listener` is bound and listening; empty for a job of one node. `on_closed` is called once,
    // on the loop, when the machine has closed the job and every node is ready to leave, 6 s later
    // at the latest. The nodes' connections end with the service, so all nodes leave when it is
    // destroyed. `secrets`, if given, must outlive the service; without them nobody has to prove
    // anything. Without `make_desk` operators are refused.
    Service(boost::asio::io_context& loop, std::optional<Acceptor> listener, MachineConfig config,
            Ledger& ledger, Log log, OnClosed on_closed, Secrets* secrets = nullptr,
            const MakeOperatorDesk& make_desk = {});
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    void start();   // listen and lead at once
    void listen();  // as a dormant service, which leads when it is told to
    // Leads from now on. `self` is where other nodes can call this service.
    void lead(const Peer& self);
    bool leads() const;  // it leads, or has led to the end
    // The own node has heard from this leader. A dormant service sends callers there.
    void heard(const Peer& leader);

    // The socket of the standby (neighbours.h), for the keeper's final message; -1: none. `changed`
    // is called whenever it changes.
    int standby_handle() const;
    std::string standby_gone_frame(const NodeId& node) const;  // the frame to write there
    void on_standby(std::function<void()> changed);

    // Sets the function that puts the job back into Slurm's queue. It calls its `done` when it has
    // done so, or has failed. It is called on the loop, at most once. Without such a function
    // nothing is done.
    void on_requeue(std::function<void(const Requeue&, std::function<void()> done)> requeue);

    // Sets the function that asks Slurm which of these hosts are out of service. It passes on the
    // answer, if there is one. It is called on the loop. Without such a function nothing is asked.
    using NodeStates = std::map<std::string, std::string>;
    void on_ask_node_states(
        std::function<void(std::vector<std::string> hosts, std::function<void(NodeStates)> said)>
            ask);

    // Sets who answers operators that ask this node about its own workers; nothing: nobody does.
    void serve_workers(std::optional<OwnWorkers> workers);
    // Whether such an operator is connected.
    bool has_visitors() const;

    // A node of a newer allocation of this job has proven itself: this one ends.
    void newer_allocation(int restart_count);

    // Takes a node that another gate has admitted. It is closed at once if the job has ended.
    void admit(std::shared_ptr<Link> link, ToLeader first);
    std::size_t connections() const;  // those at the gate included

    // The leader's own node joins without a socket. `deliver` is called on the loop, never from
    // within a call here. After close_local(), or a Close by the machine, it is not called any
    // more.
    Session open_local(Deliver deliver);
    void local_send(Session session, ToLeader message);  // posted; the order is kept
    void close_local(Session session);  // posted; for the machine this is a lost connection

    Snapshot snapshot() const;
    JobStatus status() const;  // goes over all nodes

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
