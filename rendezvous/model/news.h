// What the leader reports to the workers of all nodes of a generation: losses, and new nodes. It is
// information for programs that can use it; no node decides by it. Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proto/ids.h"

namespace ddprun::rendezvous {

// The numbers are sent.
enum class NewsKind : int {
    worker_lost = 0,  // it has failed, or could not be started
    node_lost = 1,    // all its workers are gone, or will be before others take their place
    node_joined = 2,  // it waits for a place in the next generation
};

struct NewsItem {
    NewsKind kind = NewsKind::worker_lost;
    std::string node;
    int first_rank = 0, ranks = 0;  // of the lost worker, or of those of the lost node
    int exit_code = 0;              // of a worker that exited
    int signal = 0;                 // of one that was killed
    bool operator==(const NewsItem&) const = default;
};

struct News {
    Generation generation = kNoGeneration;
    std::vector<NewsItem> items;
    bool operator==(const News&) const = default;
};
// Further ones are not told.
inline constexpr std::size_t kNewsTold = 32;

}  // namespace ddprun::rendezvous
