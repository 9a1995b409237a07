// The queues of the store: first in, first out, each under a name of its own.
//
// A queue exists as long as it has an element, so pushing makes it and taking the last element
// removes it. Queues, their names and their elements count into the store's memory; an element that
// was popped counts until nobody holds it any more. Who waits for an element is not known here
// (waits.h). Pure; owned by KeyValues.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>

#include "store/protocol/protocol.h"

namespace ddprun::store {

class Queues {
  public:
    // `memory` must outlive the queues and all elements that were popped.
    explicit Queues(Memory& memory) : memory_(memory) {}

    void push(const std::string& key, std::string&& element);

    // Takes the first element; null: there is none. An empty text is an element like any other.
    SharedValue pop(const std::string& key);

    std::size_t size() const { return queues_.size(); }

    // The number of elements; 0: there is no such queue.
    std::size_t length(const std::string& key) const;

  private:
    Memory& memory_;
    std::unordered_map<std::string, std::deque<SharedValue>> queues_;  // none of them is empty
};

}  // namespace ddprun::store
