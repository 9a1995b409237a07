// LaunchOrder: a debug check for programs with several groups over the same ranks. A rank must
// launch the calls of a group and of its splits in the order in which the other ranks do: with NCCL
// two ranks that do not can wait for each other for ever, and on CPUs blocking calls do.
//
// Two ranks count the calls of all groups that both are in. For each number the rank that comes
// first writes in the store which call it launches, and the other one compares, before its call
// begins. Nobody waits for the other, so the one that comes second always finds the difference. It
// costs two requests to the store for each other rank of the group. Calls between two ranks (send,
// receive, exchange) do not count.
//
// Any thread. It is made once for a group and shared with its splits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/group/failure_story.h"
#include "trainer/group/operation.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

class LaunchOrder {
  public:
    // A group, as messages name it.
    struct Group {
        std::string name;              // "the whole group", "color 1 of split 2"
        std::vector<int> ranks;        // in the whole group, in the group's order
        std::unique_ptr<Store> store;  // the group's, over a connection of its own
    };

    // `rank`: this process in the whole group. `launches`: how many are compared with each rank.
    LaunchOrder(std::unique_ptr<Store> store, int rank, std::uint64_t launches);

    // All ranks of a group add it at the same place in their order. Returns its number here.
    std::size_t add(Group group);

    // A split of a group: its name, and its ranks as they count in the group.
    Group part(std::size_t group, const std::string& name, const std::vector<int>& places,
               std::unique_ptr<Store> store) const;

    // Call it before each collective. If the order differs the group is over: `cut` has been
    // called, and the ranks of both groups find the sentence when they ask for the first failure.
    // Errors: refused (the order differs), those of the store.
    Result<void> next(std::size_t group, const Operation& operation,
                      const std::function<void()>& cut);

  private:
    struct Launch;
    Result<Launch> launch_of(int other, std::uint64_t number, const Launch& mine);
    std::size_t shared_with(int other) const;  // how many groups
    FailureStory story_of(const Group& group) const;

    const std::unique_ptr<Store> store_;
    const int rank_;
    const std::uint64_t launches_;
    mutable std::mutex mutex_;  // of all below
    std::vector<Group> groups_;
    std::map<int, std::uint64_t> counts_;  // of launches in groups that the rank is in, too
};

}  // namespace ddprun::trainer
