// The keys of launches in the store, and the sentence for two that differ.
#include "trainer/group/launch_order.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace ddprun::trainer {
namespace {

constexpr char kPair[] = "launch/";  // + lower rank - higher rank / number
// The first rank writes its call right after it has counted, so nobody waits so long.
constexpr auto kFirstWrites = std::chrono::seconds(30);

// The two calls with the number `number` in the order of two ranks.
Error differ(int rank, const std::string& mine, int other, const std::string& theirs,
             std::uint64_t number) {
    return Error(
        ErrorCode::refused,
        "rank " + std::to_string(rank) + " launches " + mine + ", and rank " +
            std::to_string(other) + " " + theirs + ", as number " + std::to_string(number) +
            " of the calls of all groups that both are in (ranks of the whole group); launch the "
            "calls of a group "
            "and of its splits in one order on all ranks");
}

}  // namespace

// A call as the ranks compare it: by the names of groups, which are the same on all ranks.
struct LaunchOrder::Launch {
    std::string group;
    std::uint64_t sequence = 0;
    std::string call;

    std::string text() const { return call + " in " + group; }
    std::string written() const { return group + "\n" + std::to_string(sequence) + "\n" + call; }
    // What another rank has written. Anything else becomes a launch that is the same as none.
    static Launch read(const std::string& line) {
        const auto first = line.find('\n'), second = line.find('\n', first + 1);
        if (first == std::string::npos || second == std::string::npos) return {"?", 0, line};
        Launch launch{line.substr(0, first), 0, line.substr(second + 1)};
        std::from_chars(line.data() + first + 1, line.data() + second, launch.sequence);
        return launch;
    }
};

LaunchOrder::LaunchOrder(std::unique_ptr<Store> store, int rank, std::uint64_t launches)
    : store_(std::move(store)), rank_(rank), launches_(launches) {}

std::size_t LaunchOrder::add(Group group) {
    std::lock_guard lock(mutex_);
    groups_.push_back(std::move(group));
    return groups_.size() - 1;
}

LaunchOrder::Group LaunchOrder::part(std::size_t group, const std::string& name,
                                     const std::vector<int>& places,
                                     std::unique_ptr<Store> store) const {
    std::lock_guard lock(mutex_);
    const Group& whole = groups_[group];
    Group part{name, {}, std::move(store)};
    for (int place : places) part.ranks.push_back(whole.ranks[static_cast<std::size_t>(place)]);
    return part;
}

Result<void> LaunchOrder::next(std::size_t group, const Operation& operation,
                               const std::function<void()>& cut) {
    std::lock_guard lock(mutex_);
    const Launch mine{groups_[group].name, operation.sequence, describe(operation)};
    for (int other : groups_[group].ranks) {
        if (other == rank_) continue;
        const std::uint64_t number = ++counts_[other];
        // One group has its own order: the ranks compare its calls in another way.
        if (number > launches_ || shared_with(other) < 2) continue;
        auto theirs = launch_of(other, number, mine);
        if (!theirs) return theirs.error();
        if (theirs->group == mine.group && theirs->sequence == mine.sequence) continue;
        const Error error = differ(rank_, mine.text(), other, theirs->text(), number);
        for (const Group& one : groups_)
            if (one.name == theirs->group) story_of(one).announce({{}, mine.text(), error, -1});
        return story_of(groups_[group]).tell({operation, mine.text(), error, -1}, cut);
    }
    return {};
}

// What both ranks launch as this number: mine, if the other one has not come to it yet.
Result<LaunchOrder::Launch> LaunchOrder::launch_of(int other, std::uint64_t number,
                                                   const Launch& mine) {
    const std::string key = kPair + std::to_string(std::min(rank_, other)) + "-" +
                            std::to_string(std::max(rank_, other)) + "/" + std::to_string(number);
    auto came = store_->add(key + "/came", 1);
    if (!came) return came.error();
    if (*came == 1) {
        if (auto done = store_->set(key, mine.written()); !done) return done.error();
        return mine;
    }
    auto theirs = store_->get(key, kFirstWrites);
    if (!theirs) return theirs.error();
    return Launch::read(*theirs);
}

std::size_t LaunchOrder::shared_with(int other) const {
    return static_cast<std::size_t>(
        std::count_if(groups_.begin(), groups_.end(), [other](const Group& group) {
            return std::find(group.ranks.begin(), group.ranks.end(), other) != group.ranks.end();
        }));
}

FailureStory LaunchOrder::story_of(const Group& group) const {
    const auto me = std::find(group.ranks.begin(), group.ranks.end(), rank_);
    return FailureStory(*group.store, static_cast<int>(me - group.ranks.begin()),
                        static_cast<int>(group.ranks.size()), job_ranks_of_part({}, group.ranks));
}

}  // namespace ddprun::trainer
