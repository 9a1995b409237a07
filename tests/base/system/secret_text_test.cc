// What the kernel and a forked process see of a secret.
#include "base/system/secret_text.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

namespace ddprun {
namespace {

using testing::HasSubstr;

const std::string kText = "a secret of all nodes, long enough for the heap";

// The line VmFlags of /proc/self/smaps for the mapping with `at` in it: dd is left out of core
// files, wf is wiped on a fork.
std::string flags_of(const void* at) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    std::ifstream maps("/proc/self/smaps");
    bool inside = false;
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t first = 0, last = 0;
        char dash = 0;
        if (std::istringstream head(line); head >> std::hex >> first >> dash >> last && dash == '-')
            inside = first <= address && address < last;
        if (inside && line.starts_with("VmFlags:")) return line + " ";
    }
    return "";
}

TEST(SecretText, IsLeftOutOfCoreFiles) {
    const SecretText secret(kText);
    EXPECT_EQ(std::string_view(secret), kText);
    EXPECT_THAT(flags_of(secret.data()), HasSubstr(" dd "));
}

// A leader of ten thousand nodes copies its secret for each.
TEST(SecretText, SharesItsPageWithItsCopies) {
    std::optional<SecretText> first(kText);
    const SecretText copy = *first, assigned = copy;
    EXPECT_EQ(copy.data(), first->data());
    EXPECT_EQ(assigned.data(), first->data());
    first.reset();
    EXPECT_EQ(std::string_view(copy), kText) << "the last of them gives the page back";
}

// A copy is wiped with its page, and what was moved, too.
TEST(SecretText, IsGoneInAForkedProcess) {
    const SecretText first(kText), copy(first);
    SecretText other(kText);
    const SecretText moved = std::move(other);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto is_wiped = [](const SecretText& one) {
            return std::ranges::all_of(std::string_view(one), [](char c) { return c == 0; });
        };
        ::_exit(is_wiped(first) && is_wiped(copy) && is_wiped(moved) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(copy, first) << "here it stays";
}

TEST(SecretText, LeavesNoPlainTextBehind) {
    std::string plain = kText;
    const char* const where = plain.data();
    const SecretText secret = SecretText::out_of(std::move(plain));
    EXPECT_EQ(std::string_view(secret), kText);
    EXPECT_EQ(std::string(where, 8), std::string(8, '\0')) << "the buffer is still the string's";
}

// Empty ones take no memory, and an assignment drops the old secret.
TEST(SecretText, IsAValueLikeAnyOther) {
    SecretText none, some = kText;
    EXPECT_TRUE(none.empty());
    some = none;
    EXPECT_TRUE(some.empty());
    some = "another";
    some = SecretText(some);
    EXPECT_EQ(some, SecretText("another"));
}

}  // namespace
}  // namespace ddprun
