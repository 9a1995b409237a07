// Serves PMI to the ranks of a test, as ddprun does with --pmi.
#include <fcntl.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "agent/pmi/pmi_server.h"
#include "tests/trainer/ranks.h"

namespace ddprun::trainer::test {
namespace {

class PmiHost final : public RankHost {
  public:
    explicit PmiHost(int world)
        : server_(
              loop_, place(world), std::make_shared<TurnBudget>(loop_),
              [](const agent::pmi::Desk::Fault& fault) {
                  std::fprintf(stderr, "rank %d: %s\n", fault.index, fault.why.c_str());
              },
              [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }) {
        for (int rank = 0; rank < world; ++rank) ends_.push_back(server_.open(rank));
    }
    ~PmiHost() override {
        loop_.stop();
        if (thread_.joinable()) thread_.join();
    }

    // The loop belongs to the test; a rank only keeps its end of the socket.
    void enter(int rank) override {
        const auto size = std::to_string(ends_.size());
        const UniqueFd own = std::move(ends_[static_cast<std::size_t>(rank)]);
        ends_.clear();
        setenv("PMI_FD", std::to_string(fcntl(own.get(), F_DUPFD, 3)).c_str(), 1);
        setenv("PMI_RANK", std::to_string(rank).c_str(), 1);
        setenv("PMI_SIZE", size.c_str(), 1);
    }

    void serve() override {
        ends_.clear();
        thread_ = std::thread([this] {
            const auto stay = boost::asio::make_work_guard(loop_);
            loop_.run();
        });
    }

  private:
    static rendezvous::NodePlace place(int world) {
        rendezvous::NodePlace place;
        place.slots = place.world_size = world;
        return place;
    }

    boost::asio::io_context loop_{1};
    agent::pmi::Server server_;
    std::vector<UniqueFd> ends_;  // of the ranks
    std::thread thread_;
};

[[maybe_unused]] const bool kSet = [] {
    make_rank_host = [](int world) -> std::unique_ptr<RankHost> {
        return std::make_unique<PmiHost>(world);
    };
    return true;
}();

}  // namespace
}  // namespace ddprun::trainer::test
