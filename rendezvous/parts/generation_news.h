// What the workers of the newest generation are to know of each other (rendezvous/model/news.h), in
// the order in which the leader has learned it, each once. Pure; owned by the rendezvous machine.
#pragma once

#include <algorithm>
#include <optional>

#include "rendezvous/model/news.h"

namespace ddprun::rendezvous {

class GenerationNews {
  public:
    void begin(Generation generation) { news_ = {generation, {}}; }
    void add(const NewsItem& item) {
        if (news_.items.size() < kNewsTold && std::ranges::count(news_.items, item) == 0)
            news_.items.push_back(item);
    }
    std::size_t count() const { return news_.items.size(); }
    // Nothing, where a node that was told so many has them all.
    std::optional<News> after(std::size_t told) const {
        return told < count() ? std::optional(news_) : std::nullopt;
    }

  private:
    News news_;
};

}  // namespace ddprun::rendezvous
