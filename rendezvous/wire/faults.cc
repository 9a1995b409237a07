// Makes the sentences about faulty fields.
#include "rendezvous/wire/faults.h"

namespace ddprun::rendezvous {

// Built only when there is a fault.
std::string Place::path() const {
    std::string path = parent_ ? parent_->path() + "." + name_ : name_;
    if (index_ >= 0) path += "[" + std::to_string(index_) + "]";
    return path;
}

// Later faults are often only consequences of the first one.
void Place::complain(const char* field, const std::string& sentence) const {
    if (!fault_.first)
        fault_.first.emplace(ErrorCode::malformed, path() + "." + field + ": " + sentence);
}

std::int64_t Place::integer(const char* field, std::int64_t value, std::int64_t low,
                            std::int64_t high) const {
    if (value >= low && value <= high) return value;
    complain(field, std::to_string(value) + " is not " + std::to_string(low) + ".." +
                        std::to_string(high));
    return low;
}

std::string Place::text(const char* field, std::string_view value, std::size_t low,
                        std::size_t high) const {
    if (value.size() >= low && value.size() <= high) return std::string(value);
    if (value.empty())
        complain(field, "is empty");
    else
        complain(field,
                 std::to_string(value.size()) + " bytes (limit " + std::to_string(high) + ")");
    return {};
}

Duration Place::duration(const char* field, std::int64_t nanoseconds, Duration low,
                         Duration high) const {
    return Duration{integer(field, nanoseconds, low.count(), high.count())};
}

bool Place::count(const char* field, std::size_t size, std::size_t high) const {
    if (size <= high) return true;
    complain(field, std::to_string(size) + " elements (limit " + std::to_string(high) + ")");
    return false;
}

}  // namespace ddprun::rendezvous
