// Values with types in the metadata of a snapshot: what was stored comes back with the same bits,
// and what is no such value is refused with its name.
#include "trainer/snapshot/format/metadata.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace ddprun::trainer {
namespace {

using testing::HasSubstr;

template <class T>
T stored(T value) {
    const Metadata metadata{{"key", text_of(value)}};
    return value_of<T>(metadata, "key").value();
}

// The least and greatest values, and numbers that no decimal text of few digits has.
TEST(Metadata, GivesNumbersBackWithTheSameBits) {
    using Limits = std::numeric_limits<std::int64_t>;
    for (std::int64_t value : {Limits::min(), std::int64_t{-1}, std::int64_t{0}, Limits::max()})
        EXPECT_EQ(stored(value), value);
    EXPECT_EQ(stored(std::numeric_limits<std::uint64_t>::max()),
              std::numeric_limits<std::uint64_t>::max());
    for (double value : {0.1, 1.0 / 3, -0.0, 5e-324, 1.7976931348623157e308,
                         std::numeric_limits<double>::infinity()}) {
        EXPECT_EQ(std::bit_cast<std::uint64_t>(stored(value)), std::bit_cast<std::uint64_t>(value));
    }
    EXPECT_TRUE(std::isnan(stored(std::numeric_limits<double>::quiet_NaN())));
    EXPECT_EQ(stored(0.1f), 0.1f);
    EXPECT_TRUE(stored(true));
    EXPECT_FALSE(stored(false));
}

// Every byte, and none.
TEST(Metadata, GivesBytesBack) {
    std::vector<std::byte> bytes;
    for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<std::byte>(i));
    const Metadata metadata{{"all", text_of(bytes)}, {"none", text_of({})}};
    EXPECT_EQ(bytes_at(metadata, "all").value(), bytes);
    EXPECT_TRUE(bytes_at(metadata, "none").value().empty());
}

// Text that programs wrote themselves before there were types, as linear and train did.
TEST(Metadata, ReadsNumbersThatProgramsWroteAsText) {
    const Metadata metadata{{"epoch", std::to_string(3)}, {"rate", "0.5"}};
    EXPECT_EQ(value_of<std::int64_t>(metadata, "epoch").value(), 3);
    EXPECT_EQ(value_of<double>(metadata, "rate").value(), 0.5);
    EXPECT_EQ(text_at(metadata, "rate").value(), "0.5");
}

TEST(Metadata, NamesWhatIsMissingOrNoSuchValue) {
    const Metadata metadata{{"word", "abc"}, {"empty", ""},    {"large", "300"},
                            {"real", "1.5"}, {"half", "0a1"},  {"digit", "0g"},
                            {"more", "1 "},  {"minus", "-1"},  {"escape", "\x1b[2J"},
                            {"two", "2"},    {"signs", "-1+2"}};
    auto refused = [&](const auto& result, ErrorCode code, const char* sentence) {
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code(), code);
        EXPECT_THAT(result.error().sentence(), HasSubstr(sentence));
    };
    refused(value_of<int>(metadata, "absent"), ErrorCode::not_found,
            "the metadata have no \"absent\"");
    refused(value_of<int>(metadata, "word"), ErrorCode::malformed,
            "\"word\" is \"abc\", not a whole number");
    refused(value_of<int>(metadata, "empty"), ErrorCode::malformed, "\"empty\" is \"\"");
    refused(value_of<std::uint8_t>(metadata, "large"), ErrorCode::malformed, "\"300\"");
    refused(value_of<std::uint64_t>(metadata, "minus"), ErrorCode::malformed, "\"-1\"");
    refused(value_of<int>(metadata, "real"), ErrorCode::malformed, "\"1.5\"");
    refused(value_of<double>(metadata, "more"), ErrorCode::malformed, "\"1 \", not a number");
    refused(value_of<bool>(metadata, "two"), ErrorCode::malformed, "\"2\", not 0 or 1");
    for (const char* key : {"half", "digit", "signs"})
        refused(bytes_at(metadata, key), ErrorCode::malformed, "not bytes in hexadecimal digits");
    // A terminal obeys escape sequences, also those of a damaged snapshot.
    EXPECT_EQ(value_of<int>(metadata, "escape").error().sentence().find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace ddprun::trainer
