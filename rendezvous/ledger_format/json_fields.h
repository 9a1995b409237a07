// Writes and reads tables of fields (wire/fields.h) as JSON objects. What is read is checked, and
// faults are noted at their Place; a missing field or a wrong type throws
// nlohmann::json::exception. Pure.
//
// A time has "_ns" behind its name. Random 64-bit numbers are hexadecimal text, since JSON numbers
// lose bits beyond 2^53 in many readers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/hexadecimal.h"
#include "rendezvous/wire/fields.h"

namespace ddprun::rendezvous {

// Text that is not UTF-8, which a JSON text cannot hold, becomes {"hex": "…"}: names and output of
// workers may have any bytes.
nlohmann::json text_json(const std::string& text);
std::string plain_text(const Place& place, const char* field, const nlohmann::json& json);
std::uint64_t from_hexadecimal(const Place& place, const char* field, const nlohmann::json& json);

template <class T>
std::string json_key(const char* name) {
    return std::same_as<T, Duration> ? std::string(name) + "_ns" : name;
}
template <class T>
inline constexpr bool is_random = std::same_as<T, std::uint64_t> || std::same_as<T, Incarnation>;

class JsonWriter {
  public:
    explicit JsonWriter(nlohmann::json& to) : to_(to) {}

    template <class Field, class T, class Bounds>
    void operator()(const Field& field, const T& value, const Bounds& bounds) {
        if constexpr (is_absent_if<Bounds>) {
            if (value != bounds.value) (*this)(field, value, bounds.bounds);
        } else if constexpr (is_optional<T>) {
            if (value) (*this)(field, *value, bounds);
        } else {
            to_[json_key<T>(field.name)] = json_of(value, bounds);
        }
    }

  private:
    template <class T, class Bounds>
    static nlohmann::json json_of(const T& value, const Bounds& bounds) {
        if constexpr (is_random<T>) {
            return hexadecimal(plain(value));
        } else if constexpr (is_number<T>) {
            return plain(value);
        } else if constexpr (std::same_as<T, std::string>) {
            const bool cut = bounds.too_long != TooLong::refused;
            return text_json(cut ? value.substr(0, bounds.high) : value);
        } else if constexpr (is_list<T>) {
            nlohmann::json list = nlohmann::json::array();
            for (const auto& one : value) {
                if constexpr (std::same_as<Bounds, Items>)
                    list.push_back(json_of(one, Any{}));
                else
                    list.push_back(json_of(one, bounds.each));
            }
            return list;
        } else {
            nlohmann::json object = nlohmann::json::object();
            JsonWriter inner(object);
            each_field(inner, value);
            return object;
        }
    }

    nlohmann::json& to_;
};

class JsonReader {
  public:
    // Both must outlive the reader.
    JsonReader(const Place& place, const nlohmann::json& from) : place_(place), from_(from) {}

    template <class Field, class T, class Bounds>
    void operator()(const Field& field, T& value, const Bounds& bounds) {
        if constexpr (is_absent_if<Bounds>) {
            value = bounds.value;
            if (from_.contains(json_key<T>(field.name))) (*this)(field, value, bounds.bounds);
        } else if constexpr (is_optional<T>) {
            if (from_.contains(json_key<typename T::value_type>(field.name)))
                (*this)(field, value.emplace(), bounds);
        } else {
            read(field.name, from_.at(json_key<T>(field.name)), value, bounds);
        }
    }

  private:
    template <class T, class Bounds>
    void read(const char* name, const nlohmann::json& json, T& value, const Bounds& bounds) {
        if constexpr (is_random<T>) {
            value = T{from_hexadecimal(place_, name, json)};
        } else if constexpr (std::same_as<T, bool>) {
            value = json.get<bool>();
        } else if constexpr (is_number<T>) {
            value = from_plain<T>(integer(name, json.get<std::int64_t>(), bounds));
        } else if constexpr (std::same_as<T, std::string>) {
            value = place_.text(name, plain_text(place_, name, json), bounds.low, bounds.high);
        } else if constexpr (is_list<T>) {
            if (!place_.count(name, json.size(), bounds.count)) return;
            for (const nlohmann::json& one : json) {
                const int index = static_cast<int>(value.size());
                auto& item = value.emplace_back();
                if constexpr (std::same_as<Bounds, Items>)
                    struct_from(place_.at(name, index), one, item);
                else
                    read(name, one, item, bounds.each);
            }
        } else {
            struct_from(place_.at(name), json, value);
        }
    }

    std::int64_t integer(const char* name, std::int64_t value, Whole bounds) const {
        return place_.integer(name, value, bounds.low, bounds.high);
    }
    std::int64_t integer(const char* name, std::int64_t value, Time bounds) const {
        return place_.duration(name, Duration{value}.count(), bounds.low, bounds.high).count();
    }

    template <class T>
    static void struct_from(const Place& place, const nlohmann::json& json, T& value) {
        JsonReader inner(place, json);
        each_field(inner, value);
    }

    const Place& place_;
    const nlohmann::json& from_;
};

}  // namespace ddprun::rendezvous
