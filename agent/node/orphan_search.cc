// The looks at the folders of other ddpruns, and what follows from them.
#include "agent/node/orphan_search.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/system/remove_folder.h"
#include "keeper/killing/orphans.h"

namespace ddprun::agent {
namespace {

// Until the second look at a folder that is held. Each further wait is twice as long.
constexpr Duration kFirstWait = std::chrono::milliseconds{50};
constexpr Duration kLongestWait = std::chrono::milliseconds{800};

}  // namespace

OrphanSearch::OrphanSearch(boost::asio::io_context& loop,
                           std::function<void(const std::string&)> warn)
    : warn_(std::move(warn)), timer_(loop), thread_(loop) {}

void OrphanSearch::begin(OthersFolders found) { heed(std::move(found), kFirstWait); }

// `wait`: until the folders that are held now are looked at again.
void OrphanSearch::heed(OthersFolders found, Duration wait) {
    for (AbandonedFolder& folder : found.abandoned) end_those_of(std::move(folder));
    if (found.held.empty() || wait > kLongestWait) return;
    timer_.expires_after(wait);
    timer_.async_wait([this, held = std::move(found.held), wait,
                       alive = std::weak_ptr(alive_)](const auto& error) {
        // A wait that is over is not cancelled any more when this object goes.
        if (error || !alive.lock()) return;
        auto now = std::make_shared<OthersFolders>();
        thread_.post([now, held] { *now = look_at_folders(held); },
                     [this, now, wait, alive = std::weak_ptr(alive_)] {
                         if (alive.lock()) heed(std::move(*now), 2 * wait);
                     });
    });
}

// A record that cannot be read is left alone: another version of ddprun may know better.
void OrphanSearch::end_those_of(AbandonedFolder abandoned) {
    const std::optional<Origin> origin = read_origin(abandoned.origin);
    if (!origin) return;
    const auto folder = std::make_shared<AbandonedFolder>(std::move(abandoned));
    auto left = std::make_shared<std::optional<LeftRunning>>();
    thread_.post(
        [left, folder, origin = *origin] {
            *left = kill_orphans(origin);
            if (*left) remove_folder(folder->path, folder->lock.get());
        },
        [this, left, alive = std::weak_ptr(alive_)] {
            if (alive.lock() && *left && (*left)->count > 0)
                warn_(left_sentence(**left,
                                    "left by a ddprun that was killed together with its keeper"));
        });
}

}  // namespace ddprun::agent
