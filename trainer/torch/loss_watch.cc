// Polls for the far end's hang-up only: the data on the connections are libtorch's.
#include "trainer/torch/loss_watch.h"

#include <poll.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace ddprun::trainer {
namespace {
// Keys in the group's store.
constexpr char kGoodbye[] = "torch/goodbye/";      // + rank: counter
constexpr char kLosses[] = "torch/losses";         // counter: how many ranks have seen one
constexpr char kFirstLost[] = "torch/first_lost";  // the rank that the first of them saw
}  // namespace

// The connection is made now, not when it is needed: a lost rank may have taken the store with it.
Result<std::unique_ptr<LossWatch>> LossWatch::start(const Store& store,
                                                    std::vector<std::pair<int, int>> links,
                                                    std::function<void()> cut) {
    auto own = store.another("");
    if (!own) return own.error();
    std::unique_ptr<LossWatch> watch(
        new LossWatch(std::move(*own), std::move(links), std::move(cut)));
    auto wake = WakePipe::make("the group's watch");
    if (!wake) return wake.error();
    watch->wake_ = std::move(*wake);
    auto thread = start_thread("the group's watch", [self = watch.get()] { self->serve(); });
    if (!thread) return thread.error();
    watch->thread_ = std::move(*thread);
    return watch;
}

LossWatch::LossWatch(std::unique_ptr<Store> store, std::vector<std::pair<int, int>> links,
                     std::function<void()> cut)
    : store_(std::move(store)), links_(std::move(links)), cut_(std::move(cut)) {}

LossWatch::~LossWatch() {
    if (thread_.joinable()) {
        wake_.wake();
        thread_.join();
    }
}

// Counters and not values: the store answers add(), and the answer proves that it has them.
void LossWatch::say_goodbye(Store& store, int rank) {
    (void)store.add(kGoodbye + std::to_string(rank), 1);
}

int LossWatch::first_lost(Store& store) {
    auto rank = store.get(kFirstLost, std::chrono::milliseconds(300));
    return rank ? std::atoi(rank->c_str()) : -1;
}

// Ends on wake_, on a cut of our own, and after the first loss.
void LossWatch::serve() {
    std::vector<pollfd> ends{{wake_.fd(), POLLIN, 0}};
    for (const auto& [fd, rank] : links_) ends.push_back({fd, POLLRDHUP, 0});
    while (true) {
        if (poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return;
        if (ends[0].revents || cut_by_us_) return;
        for (std::size_t i = 1; i < ends.size(); ++i) {
            if (!ends[i].revents) continue;
            const int rank = links_[i - 1].second;
            ends[i].fd = -1;  // poll() ignores it from now on
            if (said_goodbye(rank)) continue;
            if (!cut_by_us_) say_lost(rank);
            return cut_();
        }
    }
}

// If the store does not answer, nothing is proved. Then only the ranks that wait for that rank
// notice its end.
bool LossWatch::said_goodbye(int rank) {
    auto count = store_->add(kGoodbye + std::to_string(rank), 0);
    return !count || *count > 0;
}

// Each rank that cuts its group looks lost to the others. Only the first report names the one that
// was really lost.
void LossWatch::say_lost(int rank) {
    auto count = store_->add(kLosses, 1);
    if (!count || *count != 1) return;
    (void)store_->set(kFirstLost, std::to_string(rank));
    (void)store_->add(kLosses, 0);  // the answer proves that the name is there
}

}  // namespace ddprun::trainer
