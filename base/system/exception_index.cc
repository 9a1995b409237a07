// Reads the table, and searches in it as the unwinder does.
#include "base/system/exception_index.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>

namespace ddprun {
namespace {

// The version and the encodings: 32 bits from their own place, 32 bits, 32 bits from the header.
constexpr unsigned char kForm[] = {1, 0x1b, 0x03, 0x3b};
constexpr std::size_t kTableAt = 12, kEntry = 8;

class Table {
  public:
    Table(const char* header, std::uintptr_t page_size)
        : header_(header), page_size_(page_size), count_(number<std::uint32_t>(8)) {}

    std::size_t count() const { return count_; }
    std::uintptr_t place(std::size_t entry) const {
        return reinterpret_cast<std::uintptr_t>(header_) + kTableAt + kEntry * entry;
    }
    std::uintptr_t page(std::size_t entry) const { return place(entry) / page_size_ * page_size_; }
    // The first entry of code at `code` or after it.
    std::size_t first(std::uintptr_t code) const {
        std::size_t low = 0, high = count_;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            code_of(middle) < code ? low = middle + 1 : high = middle;
        }
        return low;
    }
    // Adds the pages at which a search for this entry looks.
    void search(std::size_t entry, std::set<std::uintptr_t>& pages) const {
        std::size_t low = 0, high = count_ - 1;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            pages.insert({page(middle), page(middle + 1)});
            if (entry == middle) return;
            entry < middle ? high = middle : low = middle + 1;
        }
    }

  private:
    template <class Number>
    Number number(std::size_t at) const {
        Number value;
        std::memcpy(&value, header_ + at, sizeof value);
        return value;
    }
    std::uintptr_t code_of(std::size_t entry) const {
        return reinterpret_cast<std::uintptr_t>(header_) +
               static_cast<std::uintptr_t>(
                   static_cast<std::intptr_t>(number<std::int32_t>(kTableAt + kEntry * entry)));
    }

    const char* header_;
    std::uintptr_t page_size_;
    std::size_t count_;
};

}  // namespace

// What a search looks at lies halfway between its bounds. Bounds with entries of this code and of
// other code between them have one of its two edges between them, and so have those of the search
// for what is next to this edge.
std::vector<PageSpan> index_only_for(const char* header, std::uintptr_t code_begin,
                                     std::uintptr_t code_end, std::uintptr_t page_size) {
    if (std::memcmp(header, kForm, sizeof kForm) != 0) return {};
    const Table table(header, page_size);
    const std::size_t begin = table.first(code_begin), end = table.first(code_end);
    if (begin == end) return {};
    std::set<std::uintptr_t> kept;
    if (begin > 0) table.search(begin - 1, kept);
    if (end < table.count()) table.search(end, kept);
    std::vector<PageSpan> spans;
    for (std::uintptr_t page = table.page(begin) + page_size; page < table.page(end);
         page += page_size) {
        if (kept.contains(page)) continue;
        if (spans.empty() || spans.back().end != page) spans.push_back({page, page});
        spans.back().end = page + page_size;
    }
    return spans;
}

}  // namespace ddprun
