// Counts samples outside of collectives.
#include "diagnosis/standstill/pace_meter.h"

#include <algorithm>
#include <utility>

namespace ddprun::agent {
namespace {

constexpr int kSamples = 60;

bool is_seen(const WorkerSample& worker) { return worker.is_known && !worker.has_ended; }

}  // namespace

bool PaceMeter::sampled(const std::vector<WorkerSample>& workers) {
    outside_.resize(workers.size());
    for (std::size_t i = 0; i < workers.size(); ++i) outside_[i] += workers[i].pending == 0;
    sees_all_ = sees_all_ && std::ranges::all_of(workers, is_seen);
    if (++samples_ < kSamples || workers.empty()) return false;
    rendezvous::Pace found;
    if (sees_all_) {
        const auto most = std::ranges::max_element(outside_);
        found.outside = 100 * *most / kSamples;
        found.slowest = static_cast<int>(most - outside_.begin());
        outside_.erase(most);
        if (!outside_.empty()) {
            const auto middle = outside_.begin() + static_cast<long>(outside_.size() / 2);
            std::ranges::nth_element(outside_, middle);
            found.others = std::max(1, 100 * *middle / kSamples);
        }
    }
    *this = PaceMeter();
    pace_ = found;
    return true;
}

}  // namespace ddprun::agent
