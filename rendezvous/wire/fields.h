// How a struct is described once for all formats: a table of its fields with their bounds.
//
// The table of a struct is a function template each_field(visitor, value) that calls the visitor
// with each field's name, the member and its bounds (model_fields.h, message_fields.h). A visitor
// knows one format and one direction: protobuf in protobuf_fields.h, JSON in
// ledger_format/json_fields.h. So a new field is one line, and is never written without being read.
// Pure.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/time.h"
#include "proto/ids.h"
#include "rendezvous/wire/faults.h"

namespace ddprun::rendezvous {

// A field's name, and how protobuf's generated classes call it. The functions are templates, so
// only those that a format uses have to exist: JSON takes nothing but the name.
template <class Get, class Set, class Mutable, class Has>
struct Field {
    const char* name;
    Get get;
    Set set;
    Mutable mutable_field;
    Has has;  // exists for optional fields and for messages
};
// Clang 14 does not deduce the arguments of aggregates by itself.
template <class Get, class Set, class Mutable, class Has>
Field(const char*, Get, Set, Mutable, Has) -> Field<Get, Set, Mutable, Has>;
#define DDPRUN_FIELD(field)                                                      \
    ::ddprun::rendezvous::Field {                                                \
#field, [](const auto& message) -> decltype(auto) { return message.field(); }, \
            [](auto& message, auto&& value) {                                        \
                message.set_##field(std::forward<decltype(value)>(value));           \
            },                                                                       \
            [](auto& message) { return message.mutable_##field(); },                 \
            [](const auto& message) -> decltype(message.has_##field()) {             \
                return message.has_##field();                                        \
            } \
    }

// `value` of a table is const when it is written.
template <class T, class Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

// Bounds, one kind for each type of member. A reader complains about what is outside. A writer cuts
// lists and sentences, so that they are accepted; a name that is too long is refused by the reader,
// since half of it would mean something else.
struct Whole {  // integers, enumerations, ids, ports
    std::int64_t low, high;
};
struct Time {
    Duration low, high;
};
enum class TooLong {
    refused,  // a name
    cut,      // a sentence
    shares,   // output of workers: all such texts of a message share a budget (TextBudget)
};
struct Text {
    std::size_t low, high;  // bytes
    TooLong too_long = TooLong::refused;
};
enum class Keep { first, last };
template <class Bounds>
struct List {  // texts or numbers
    std::size_t count;
    Bounds each;
    Keep keep = Keep::first;  // of too many
};
template <class Bounds>
List(std::size_t, Bounds) -> List<Bounds>;
template <class Bounds>
List(std::size_t, Bounds, Keep) -> List<Bounds>;
struct Items {  // structs
    std::size_t count;
};
struct Any {};       // a bool, a random number, a struct: no bounds of its own
struct Inverted {};  // a bool that is sent as its opposite, so that a missing field means true
// The field is left out when it has this value, and has it when it is missing.
template <class T, class Bounds>
struct AbsentIf {
    T value;
    Bounds bounds;
};
template <class T, class Bounds>
AbsentIf(T, Bounds) -> AbsentIf<T, Bounds>;

// A year: more than any option allows, and far from an overflow.
inline constexpr Duration kYear = std::chrono::hours{24 * 366};
inline constexpr Time kTime{Duration{0}, kYear};
inline constexpr Time kAnyPast{Duration{0}, Duration{kMaxNumber}};
inline constexpr Time kAround{-kYear, kYear};  // negative: it has passed
inline constexpr Whole kNumber{0, kMaxNumber}, kNumberOrNone{-1, kMaxNumber};  // -1: none
inline constexpr Whole kPort{0, UINT16_MAX};
inline constexpr Whole kCount{0, kMaxWorld};
inline constexpr Text kName{0, kMaxName}, kSentence{0, kMaxText, TooLong::cut};
inline constexpr Text kOutput{0, kMaxText, TooLong::shares};
template <class Enum>
constexpr Whole up_to(Enum last) {
    return {0, static_cast<std::int64_t>(last)};
}

// How many bytes of text one message may still contain. Each text gets at most kMaxText of them.
class TextBudget {
  public:
    explicit TextBudget(std::size_t left) : left_(left) {}
    std::string take(const std::string& text);
    bool empty() const { return left_ == 0; }

  private:
    std::size_t left_;
};

// The types of members, for visitors.
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T>
inline constexpr bool is_strong = false;
template <class Tag, class Int>
inline constexpr bool is_strong<Strong<Tag, Int>> = true;
template <class T>
inline constexpr bool is_absent_if = false;
template <class T, class Bounds>
inline constexpr bool is_absent_if<AbsentIf<T, Bounds>> = true;
template <class T>
inline constexpr bool is_number =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || is_strong<T> || std::same_as<T, Duration>;

// A number as the plain integer that is sent, and back.
template <class T>
constexpr auto plain(T value) {
    if constexpr (is_strong<T>)
        return value.value;
    else if constexpr (std::same_as<T, Duration>)
        return value.count();
    else if constexpr (std::is_enum_v<T>)
        return static_cast<int>(value);
    else
        return value;
}
template <class T>
constexpr T from_plain(std::int64_t value) {
    if constexpr (is_strong<T>)
        return T{static_cast<typename T::Value>(value)};
    else
        return static_cast<T>(value);
}

}  // namespace ddprun::rendezvous
