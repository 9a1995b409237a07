// The table of keys and values: who sees a change, when a value changes in place, and what counts.
// Pure. What clients see of it is in key_values_test.cc.
#include "store/server/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::store {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ValuesTest : public testing::Test {
  protected:
    std::string get(const std::string& key) const { return *values_.find(key); }

    Memory memory_{1 << 20};
    Values values_{memory_};
};

// A key exists from its first value on until it is removed, also with an empty value.
TEST_F(ValuesTest, KeysComeAndGo) {
    EXPECT_EQ(values_.find("/a"), nullptr);
    values_.put("/a", "1");
    values_.put("/b", "");
    values_.put("/a", "2");
    values_.append("/b", "3");
    EXPECT_EQ(get("/a"), "2");
    EXPECT_EQ(get("/b"), "3");
    EXPECT_THAT(values_.keys(), UnorderedElementsAre("/a", "/b"));
    values_.remove("/a");
    values_.remove("/none");
    EXPECT_FALSE(values_.contains("/a"));
    EXPECT_EQ(values_.size(), 1u);
}

// A slow reader holds a value while others replace, extend and remove it. The bytes on their way
// must not change under it.
TEST_F(ValuesTest, AHeldValueStaysWhatItWas) {
    values_.put("/k", "old");
    const SharedValue first = values_.find("/k");
    values_.put("/k", "new");
    const SharedValue second = values_.find("/k");
    values_.append("/k", "er");
    const SharedValue third = values_.find("/k");
    values_.remove("/k");
    EXPECT_EQ(*first, "old");
    EXPECT_EQ(*second, "new");
    EXPECT_EQ(*third, "newer");
}

// A counter that nobody reads at the moment, the usual case: the value changes where it lies, and
// the request gets the old buffer for the next one.
TEST_F(ValuesTest, AFreeValueChangesInPlace) {
    values_.put("/n", "1");
    const std::string* place = values_.find("/n").get();
    std::string next = "2";
    values_.put("/n", std::move(next));
    EXPECT_EQ(next, "1");
    values_.append("/n", "0");
    EXPECT_EQ(values_.find("/n").get(), place);
    EXPECT_EQ(get("/n"), "20");
}

// Keys and values count, and so does a value that was replaced but is still held. When all is gone,
// the count is 0 again.
TEST_F(ValuesTest, CountsUntilNobodyHoldsIt) {
    const std::size_t size = 10'000;
    values_.put("/k", std::string(size, 'x'));
    EXPECT_GE(memory_.used, size + Values::kEntryItself);
    SharedValue held = values_.find("/k");
    values_.put("/k", std::string(size, 'y'));
    EXPECT_GE(memory_.used, 2 * size);
    values_.append("/k", std::string(size, 'z'));
    EXPECT_GE(memory_.used, 3 * size);
    held.reset();
    EXPECT_GE(memory_.used, 2 * size);
    EXPECT_LT(memory_.used, 3 * size);
    values_.remove("/k");
    EXPECT_EQ(memory_.used, 0u);
    EXPECT_THAT(values_.keys(), IsEmpty());
}

}  // namespace
}  // namespace ddprun::store
