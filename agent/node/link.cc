// The two kinds of link to a leader (over TCP, or into this process), and the switch between them.
#include "agent/node/link.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>

namespace ddprun::agent {
namespace {

// To a leader on another node. rendezvous::Client does the calling; this class adds what the agent
// knows: where to call, and whether this node reads the leader's ledger.
class RemoteLink {
  public:
    RemoteLink(boost::asio::io_context& loop, LinkConfig config, const Log& log,
               Link::OnEvent on_event)
        : config_(std::move(config)),
          log_(log),
          on_event_(std::move(on_event)),
          nobody_answers_(loop),
          client_(loop, log,
                  {.on_up =
                       [this](const std::string& address) {
                           calling_.reset();
                           on_event_(LinkUp{address});
                       },
                   .on_message = [this](const rendezvous::ToNode& message) { came(message); },
                   .on_lost = [this](const Error& error) { hand_on(LinkLost{error.sentence()}); }},
                  config_.secrets) {}

    // Calls until somebody answers. `once` is for a leader whose address is known; then nobody else
    // is called.
    void connect(const Connect& request) {
        close();
        call(request);
        if (request.once) return;
        calling_ = std::make_shared<Connect>(request);
        await_members();
    }
    // The state machine does not know about ledgers, so the Join gets the ledger mark here.
    void send(rendezvous::ToLeader message) {
        if (auto* join = std::get_if<rendezvous::Join>(&message)) join->ledger_mark = ledger_read_;
        client_.send(message);
    }
    // Forgets everything of the old connection, so that late answers cannot touch the next one.
    void close() {
        forget_ledger();
        calling_.reset();
        client_.close();
    }
    UniqueFd part() {
        forget_ledger();
        return UniqueFd(client_.part());
    }
    int native_handle() const { return client_.native_handle(); }
    std::string gone_frame(const rendezvous::NodeId& node) const {
        return client_.gone_frame(node);
    }

  private:
    // Events that wait until it is known whether this node reads the leader's ledger.
    using Waiting = std::vector<Event>;

    // The address of the request comes first, then the addresses that were configured, then members
    // that the ledger names.
    void call(const Connect& request) {
        std::vector<rendezvous::CallTarget> where;
        if (!request.address.empty()) where.push_back({request.address, request.port});
        if (!request.once) {
            where.insert(where.end(), config_.candidates.begin(), config_.candidates.end());
            where.insert(where.end(), members_.begin(), members_.end());
        }
        client_.connect(std::move(where), request.hello, request.deadline, request.once);
    }
    // The host of the endpoint may be lost while the job continues elsewhere. So if nobody answers
    // for a while, the ledger is asked for members of the running job. `calling_` ends with the
    // first answer, and the weak_ptr then stops this search.
    void await_members() {
        nobody_answers_.expires_after(config_.members_after);
        nobody_answers_.async_wait(
            [this, weak = std::weak_ptr(calling_)](const boost::system::error_code& aborted) {
                if (aborted || !weak.lock()) return;
                config_.members([this, weak](const std::vector<rendezvous::Peer>& peers) {
                    if (const auto request = weak.lock()) found(*request, peers);
                });
            });
    }
    // Calls again only if the list has changed. In any case the search continues.
    void found(const Connect& request, const std::vector<rendezvous::Peer>& peers) {
        std::vector<rendezvous::CallTarget> members;
        // Without an incarnation nobody has named that node's service: it is a guess.
        for (const rendezvous::Peer& peer : peers)
            members.push_back(
                {peer.address, peer.port, {}, peer.node.incarnation == Incarnation{}});
        if (members != members_ && !members.empty()) {
            log_({Note::Level::info,
                  "no answer yet; also calling other nodes of the job, for example " +
                      peers.front().node.name});
            members_ = std::move(members);
            call(request);
        }
        await_members();
    }
    void forget_ledger() {
        waiting_.reset();
        ledger_read_ = 0;
    }
    // Messages that arrive after a Welcome wait together with it, so that the order stays the same.
    void hand_on(Event event) {
        if (waiting_)
            waiting_->push_back(std::move(event));
        else
            on_event_(std::move(event));
    }
    // Holds a Welcome back until it is known whether this node reads the ledger that it names: the
    // Join that answers it must say so.
    void came(const rendezvous::ToNode& message) {
        const auto* welcome = std::get_if<rendezvous::Welcome>(&message);
        if (!welcome || waiting_) return hand_on(MessageCame{message});
        waiting_ = std::make_shared<Waiting>(1, MessageCame{message});
        if (welcome->ledger_mark == 0) return looked(std::shared_ptr(waiting_), 0);
        config_.look(*welcome, [this, mark = welcome->ledger_mark,
                                weak = std::weak_ptr(waiting_)](bool found) {
            // If the weak_ptr is empty, this connection has been replaced or closed in the
            // meantime.
            if (const auto waiting = weak.lock()) looked(waiting, found ? mark : 0);
        });
    }
    // An event may close this connection or add to `waiting`, so both are checked again in every
    // step.
    void looked(const std::shared_ptr<Waiting>& waiting, std::uint64_t mark) {
        ledger_read_ = mark;
        on_event_(LedgerFound{mark != 0});
        for (std::size_t i = 0; waiting_ == waiting && i < waiting->size(); ++i)
            on_event_(Event((*waiting)[i]));
        if (waiting_ == waiting) waiting_.reset();
    }

    LinkConfig config_;
    Log log_;
    Link::OnEvent on_event_;
    std::shared_ptr<Connect> calling_;  // the request, until somebody answers
    boost::asio::steady_timer nobody_answers_;
    std::vector<rendezvous::CallTarget> members_;  // members of the running job, from its ledger
    std::shared_ptr<Waiting> waiting_;  // events since a Welcome; null: none are held back
    std::uint64_t ledger_read_ = 0;     // mark of the leader's ledger if this node reads it, else 0
    rendezvous::Client client_;
};

// To the service of this process, for the node that leads. Same messages, no socket.
class LocalLink {
  public:
    LocalLink(boost::asio::io_context& loop, rendezvous::Service& service, Link::OnEvent on_event)
        : loop_(loop), service_(service), on_event_(std::move(on_event)) {}
    ~LocalLink() { close(); }

    void connect(const Connect& request) {
        close();
        session_ = service_.open_local(
            [this](const rendezvous::ToNode& message) { on_event_(MessageCame{message}); });
        // Events never come from within a call to the link.
        boost::asio::post(loop_, [this, alive = std::weak_ptr(alive_)] {
            if (alive.lock()) on_event_(LinkUp{});
        });
        service_.local_send(*session_, request.hello);
    }
    void send(const rendezvous::ToLeader& message) {
        if (session_) service_.local_send(*session_, message);
    }
    void close() {
        if (session_) service_.close_local(*session_);
        session_.reset();
    }
    // The keeper of a leader cannot write its Gone to the leader, which is dead then. It uses the
    // leader's standby link to the node that leads next.
    int native_handle() const { return service_.standby_handle(); }
    std::string gone_frame(const rendezvous::NodeId& node) const {
        return service_.standby_gone_frame(node);
    }

  private:
    boost::asio::io_context& loop_;
    rendezvous::Service& service_;
    Link::OnEvent on_event_;
    std::optional<rendezvous::Session> session_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Uses one of the two, as each Connect says.
class SwitchedLink final : public Link {
  public:
    SwitchedLink(boost::asio::io_context& loop, LinkConfig config, rendezvous::Service& service,
                 const Log& log, const OnEvent& on_event)
        : remote_(loop, std::move(config), log, on_event), local_(loop, service, on_event) {}

    void connect(const Connect& request) override {
        close();
        self_ = request.self;
        if (self_)
            local_.connect(request);
        else
            remote_.connect(request);
    }
    void send(const rendezvous::ToLeader& message) override {
        if (self_)
            local_.send(message);
        else
            remote_.send(message);
    }
    void close() override {
        local_.close();
        remote_.close();
    }
    // close() still has to end the local link.
    UniqueFd part() override {
        UniqueFd kept = remote_.part();
        close();
        return kept;
    }
    int native_handle() const override {
        return self_ ? local_.native_handle() : remote_.native_handle();
    }
    std::string gone_frame(const rendezvous::NodeId& node) const override {
        return self_ ? local_.gone_frame(node) : remote_.gone_frame(node);
    }

  private:
    RemoteLink remote_;
    LocalLink local_;
    bool self_ = false;
};

}  // namespace

std::unique_ptr<Link> make_link(boost::asio::io_context& loop, LinkConfig config,
                                rendezvous::Service& service, Log log, Link::OnEvent on_event) {
    return std::make_unique<SwitchedLink>(loop, std::move(config), service, log, on_event);
}

}  // namespace ddprun::agent
