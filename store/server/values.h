// The values under the keys of the store.
//
// Whoever holds a value that find() returned, such as a reply to a slow reader, keeps what it was:
// a change then puts a new value in its place. A value that nobody else holds changes in place,
// without an allocation; this is the usual case. Keys and values count into the store's memory; a
// value counts until nobody holds it any more. Who watches a key or waits for it is not known here
// (watches.h, waits.h). Pure; owned by KeyValues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/protocol/protocol.h"

namespace ddprun::store {

class CountedText;

class Values {
  public:
    // An estimate of what a table entry costs besides its key.
    static constexpr std::uint64_t kEntryItself = 256;

    // `memory` must outlive this table and all values that it has given out.
    explicit Values(Memory& memory) : memory_(memory) {}

    SharedValue find(const std::string& key) const;  // null: there is no such key
    bool contains(const std::string& key) const { return values_.contains(key); }
    std::size_t size() const { return values_.size(); }
    std::vector<std::string_view> keys() const;  // in no order; valid until the next change
    // The same in parts: a key stays in its bucket until the number of buckets changes.
    std::size_t buckets() const { return values_.bucket_count(); }
    template <typename Each>
    void each_key(std::size_t bucket, const Each& each) const {
        for (auto one = values_.begin(bucket); one != values_.end(bucket); ++one) each(one->first);
    }

    // Creates the key or replaces its value. `value` gets the old buffer in exchange, for reuse, if
    // the value changes in place.
    void put(const std::string& key, std::string&& value);
    void append(const std::string& key, const std::string& more);  // the key must exist
    void remove(const std::string& key);                           // no effect if it does not

  private:
    Memory& memory_;
    std::unordered_map<std::string, std::shared_ptr<CountedText>> values_;
};

}  // namespace ddprun::store
