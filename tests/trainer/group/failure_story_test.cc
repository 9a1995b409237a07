// What the ranks of a group read of each other when one of them has died, on a store in memory.
#include "trainer/group/failure_story.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;

struct Contents {
    std::map<std::string, std::string> values;
    std::map<std::string, std::int64_t> counters;
    std::set<std::string> waited_in_vain;
};

// A wait for a key that is not there ends at once, and is noted.
class MemoryStore : public Store {
  public:
    explicit MemoryStore(Contents& contents) : contents_(contents) {}
    Result<void> set(const std::string& key, const std::string& value) override {
        contents_.values[key] = value;
        return {};
    }
    Result<std::string> get(const std::string& key, milliseconds) override {
        const auto found = contents_.values.find(key);
        if (found != contents_.values.end()) return found->second;
        contents_.waited_in_vain.insert(key);
        return Error(ErrorCode::timed_out, key + " is not there");
    }
    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        return contents_.counters[key] += delta;
    }
    Result<void> remove(const std::string& key) override {
        contents_.values.erase(key);
        contents_.counters.erase(key);
        return {};
    }
    Result<std::unique_ptr<Store>> another(const std::string&) const override {
        return std::unique_ptr<Store>(new MemoryStore(contents_));
    }

  private:
    Contents& contents_;
};

Operation call_of_all() {
    static std::vector<float> values(4);
    return Operation::all_reduce(buffer_of(std::span(values)), ReduceOp::sum);
}

std::string told(Contents& contents, int rank, int lost) {
    MemoryStore store(contents);
    return FailureStory(store, rank, 3)
        .tell({call_of_all(), "all_reduce", Error(ErrorCode::closed, "a connection was closed"),
               lost},
              [] {})
        .sentence();
}

// Rank 0 has died. Rank 1 sees that; rank 2 sees only that rank 1 has given up.
TEST(FailureStory, WhoKnowsOfADeathTellsTheOthers) {
    Contents contents;
    // Both have begun to fail before one asks for the other.
    contents.values["group/at/2"] = bytes_of(opinion_of(call_of_all()));
    const std::string first = told(contents, 1, 0), second = told(contents, 2, 1);
    EXPECT_TRUE(first.ends_with("; missing: rank 0")) << first;
    EXPECT_NE(second.find("; missing: rank 0;"), std::string::npos) << second;
    EXPECT_TRUE(contents.waited_in_vain.empty()) << *contents.waited_in_vain.begin();
}

// Rank 1 has given up before its connection closed, so it is not dead, and its word is awaited.
TEST(FailureStory, WhoHasGivenUpIsNotDead) {
    Contents contents;
    contents.counters["group/gives_up/1"] = 1;
    (void)told(contents, 0, 1);
    EXPECT_EQ(contents.values.count("group/at/1"), 0u);
    EXPECT_EQ(contents.waited_in_vain.count("group/at/1"), 1u);
}

}  // namespace
}  // namespace ddprun::trainer
