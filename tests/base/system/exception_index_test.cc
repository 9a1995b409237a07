// Which pages of an index for exceptions no search for other code looks at.
#include "base/system/exception_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

using namespace ddprun;

namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr int kEntries = 40000;
constexpr int kCodeSize = 16;  // of each entry

// An index as GNU ld writes it: its header, and code of kEntries pieces behind it.
class Index {
  public:
    explicit Index(std::size_t shift = 0) : bytes_(kPage + 12 + 8 * kEntries + shift) {
        const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
        header_ = bytes_.data() + (kPage - begin % kPage) % kPage + shift;
        const unsigned char form[] = {1, 0x1b, 0x03, 0x3b};
        const std::int32_t numbers[] = {0, kEntries};
        std::memcpy(header_, form, sizeof form);
        std::memcpy(header_ + 4, numbers, sizeof numbers);
        for (int i = 0; i < kEntries; ++i) {
            const std::int32_t entry[] = {kFirst + kCodeSize * i, 0};
            std::memcpy(header_ + 12 + 8 * i, entry, sizeof entry);
        }
    }
    char* header() { return header_; }
    std::uintptr_t code(int entry) const {
        return reinterpret_cast<std::uintptr_t>(header_) + kFirst +
               static_cast<std::uintptr_t>(kCodeSize * entry);
    }
    std::uintptr_t place(int entry) const {
        return reinterpret_cast<std::uintptr_t>(header_) + 12 + 8 * static_cast<unsigned>(entry);
    }
    // Where libgcc looks for the entry of this code.
    std::vector<std::uintptr_t> looks(std::uintptr_t pc) const {
        std::vector<std::uintptr_t> at{place(0), place(kEntries - 1)};
        int low = 0, high = kEntries - 1;
        while (pc < code(high) && low < high) {
            const int middle = (low + high) / 2;
            at.push_back(place(middle));
            if (pc < code(middle)) {
                high = middle;
                continue;
            }
            at.push_back(place(middle + 1));
            if (pc < code(middle + 1)) break;
            low = middle + 1;
        }
        return at;
    }

  private:
    static constexpr int kFirst = 1 << 20;
    std::vector<char> bytes_;
    char* header_;
};

bool has(const std::vector<PageSpan>& spans, std::uintptr_t at) {
    return std::ranges::any_of(
        spans, [at](const PageSpan& span) { return at >= span.begin && at < span.end; });
}

std::uintptr_t size_of(const std::vector<PageSpan>& spans) {
    std::uintptr_t size = 0;
    for (const PageSpan& span : spans) size += span.end - span.begin;
    return size;
}

}  // namespace

// At the begin, in the middle and at the end of the program; with pages that begin anywhere.
TEST(ExceptionIndex, NoSearchForOtherCodeLooksThere) {
    for (const auto& [begin, end] :
         {std::pair(2, 26000), {0, 26000}, {9000, 31000}, {14000, kEntries}, {19990, 20010}})
        for (const std::size_t shift : {0, 4, 1640, 4092}) {
            Index index(shift);
            const auto spans =
                index_only_for(index.header(), index.code(begin), index.code(end), kPage);
            for (int other = 0; other < kEntries; ++other) {
                if (other >= begin && other < end) continue;
                for (const std::uintptr_t pc : {index.code(other), index.code(other) + 15})
                    for (const std::uintptr_t at : index.looks(pc))
                        ASSERT_FALSE(has(spans, at)) << begin << " " << end << " " << other;
            }
            const auto whole = static_cast<std::uintptr_t>(8 * (end - begin));
            EXPECT_GE(size_of(spans) + 14 * kPage, whole);
            for (const PageSpan& span : spans) {
                EXPECT_EQ(span.begin % kPage, 0u);
                EXPECT_GE(span.begin, index.place(begin));
                EXPECT_LE(span.end, index.place(end));
            }
        }
}

TEST(ExceptionIndex, NothingForCodeThatHasNoEntriesOrAnotherForm) {
    Index index;
    EXPECT_TRUE(index_only_for(index.header(), index.code(5), index.code(5), kPage).empty());
    EXPECT_TRUE(index_only_for(index.header(), 1, 2, kPage).empty());
    index.header()[3] = 0x3c;
    EXPECT_TRUE(index_only_for(index.header(), index.code(0), index.code(30000), kPage).empty());
}
