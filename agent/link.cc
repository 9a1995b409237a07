#include "agent/link.h"

#include <boost/asio/post.hpp>
#include <optional>

namespace ddprun::agent {
namespace {

class RemoteLink final : public Link {
  public:
    RemoteLink(boost::asio::io_context& loop, std::vector<rendezvous::CallTarget> candidates,
               rendezvous::Secrets* secrets, rendezvous::Log log, OnEvent on_event)
        : candidates_(std::move(candidates)),
          on_event_(std::move(on_event)),
          client_(
              loop, std::move(log),
              {.on_up = [this](const std::string& address) { on_event_(LinkUp{address}); },
               .on_message =
                   [this](const rendezvous::ToNode& message) { on_event_(MessageCame{message}); },
               .on_lost = [this](const Error& error) { on_event_(LinkLost{error.sentence()}); }},
              secrets) {}

    void connect(const Connect& request) override {
        std::vector<rendezvous::CallTarget> where = candidates_;
        if (!request.address.empty()) where.insert(where.begin(), {request.address, request.port});
        client_.connect(std::move(where), request.hello, request.deadline);
    }
    void send(const rendezvous::ToLeader& message) override { client_.send(message); }
    void close() override { client_.close(); }
    int native_handle() const override { return client_.native_handle(); }
    std::string gone_frame(const rendezvous::NodeId& node) const override {
        return client_.gone_frame(node);
    }

  private:
    std::vector<rendezvous::CallTarget> candidates_;
    OnEvent on_event_;
    rendezvous::Client client_;
};

class LocalLink final : public Link {
  public:
    LocalLink(boost::asio::io_context& loop, rendezvous::Service& service, OnEvent on_event)
        : loop_(loop), service_(service), on_event_(std::move(on_event)) {}
    ~LocalLink() override { close(); }

    void connect(const Connect& request) override {
        close();
        session_ = service_.open_local(
            [this](const rendezvous::ToNode& message) { on_event_(MessageCame{message}); });
        boost::asio::post(loop_, [this, alive = std::weak_ptr(alive_)] {
            if (alive.lock()) on_event_(LinkUp{});
        });
        service_.local_send(*session_, request.hello);
    }
    void send(const rendezvous::ToLeader& message) override {
        if (session_) service_.local_send(*session_, message);
    }
    void close() override {
        if (session_) service_.close_local(*session_);
        session_.reset();
    }
    int native_handle() const override { return -1; }
    std::string gone_frame(const rendezvous::NodeId&) const override { return {}; }

  private:
    boost::asio::io_context& loop_;
    rendezvous::Service& service_;
    OnEvent on_event_;
    std::optional<rendezvous::Session> session_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Link> make_remote_link(boost::asio::io_context& loop,
                                       std::vector<rendezvous::CallTarget> candidates,
                                       rendezvous::Secrets* secrets, rendezvous::Log log,
                                       Link::OnEvent on_event) {
    return std::make_unique<RemoteLink>(loop, std::move(candidates), secrets, std::move(log),
                                        std::move(on_event));
}

std::unique_ptr<Link> make_local_link(boost::asio::io_context& loop, rendezvous::Service& service,
                                      Link::OnEvent on_event) {
    return std::make_unique<LocalLink>(loop, service, std::move(on_event));
}

}  // namespace ddprun::agent
