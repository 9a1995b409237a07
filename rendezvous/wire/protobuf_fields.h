// Writes and reads tables of fields (fields.h) as protobuf messages. What is read is checked, and
// faults are noted at their Place. Used by wire.cc and handshake_messages.cc. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "rendezvous/wire/faults.h"
#include "rendezvous/wire/fields.h"

namespace ddprun::rendezvous {

// Values are our own and need no checks.
template <class Message>
class ProtobufWriter {
  public:
    // Both must outlive the writer.
    ProtobufWriter(Message& to, TextBudget& budget) : to_(to), budget_(budget) {}

    template <class Field, class T, class Bounds>
    void operator()(const Field& field, const T& value, const Bounds& bounds) {
        if constexpr (is_absent_if<Bounds>) {
            if (value != bounds.value) (*this)(field, value, bounds.bounds);
        } else if constexpr (is_optional<T>) {
            if (value) (*this)(field, *value, bounds);
        } else if constexpr (std::same_as<Bounds, Inverted>) {
            field.set(to_, !value);
        } else if constexpr (is_number<T>) {
            field.set(to_, plain(value));
        } else if constexpr (std::same_as<T, std::string>) {
            field.set(to_, cut(value, bounds));
        } else if constexpr (std::same_as<Bounds, Items>) {
            const std::size_t count = std::min(value.size(), bounds.count);
            for (std::size_t i = 0; i < count; ++i)
                struct_at(*field.mutable_field(to_)->Add(), value[i], Any{});
        } else if constexpr (is_list<T>) {
            write_list(*field.mutable_field(to_), value, bounds);
        } else {
            struct_at(*field.mutable_field(to_), value, bounds);
        }
    }

    // A list that may be unknown: repeated fields cannot be absent, so a flag tells an empty list
    // from none.
    template <class Flag, class Field, class T>
    void list_if_known(const Flag& flag, const Field& field, const T& value, Items bounds) {
        flag.set(to_, value.has_value());
        if (value) (*this)(field, *value, bounds);
    }

  private:
    std::string cut(const std::string& text, Text bounds) {
        switch (bounds.too_long) {
            case TooLong::refused:
                return text;
            case TooLong::cut:
                return text.substr(0, bounds.high);
            case TooLong::shares:
                return budget_.take(text);
        }
        return text;
    }

    template <class Repeated, class T, class Bounds>
    void write_list(Repeated& to, const T& list, const List<Bounds>& bounds) {
        const std::size_t count = std::min(list.size(), bounds.count);
        const std::size_t first = bounds.keep == Keep::last ? list.size() - count : 0;
        for (std::size_t i = first; i < first + count; ++i) {
            if constexpr (std::same_as<Bounds, Text>) {
                if (bounds.each.too_long == TooLong::shares && budget_.empty()) return;
                *to.Add() = cut(list[i], bounds.each);
            } else {
                to.Add(plain(list[i]));
            }
        }
    }

    // `fields` may be a table of its own, for a struct that needs its surroundings.
    template <class Inner, class T, class Fields>
    void struct_at(Inner& to, const T& value, const Fields& fields) {
        ProtobufWriter<Inner> inner(to, budget_);
        if constexpr (std::same_as<Fields, Any>)
            each_field(inner, value);
        else
            fields(inner, value);
    }

    Message& to_;
    TextBudget& budget_;
};

template <class Message>
class ProtobufReader {
  public:
    // Both must outlive the reader.
    ProtobufReader(const Place& place, const Message& from) : place_(place), from_(from) {}

    // `value` is as its constructor made it.
    template <class Field, class T, class Bounds>
    void operator()(const Field& field, T& value, const Bounds& bounds) {
        if constexpr (is_absent_if<Bounds>) {
            value = bounds.value;
            if (present(field)) (*this)(field, value, bounds.bounds);
        } else if constexpr (is_optional<T>) {
            if (field.has(from_)) (*this)(field, value.emplace(), bounds);
        } else if constexpr (std::same_as<Bounds, Inverted>) {
            value = !field.get(from_);
        } else if constexpr (std::same_as<Bounds, Any> && is_number<T>) {
            value = T{field.get(from_)};
        } else if constexpr (is_number<T>) {
            value = number<T>(field.name, field.get(from_), bounds);
        } else if constexpr (std::same_as<T, std::string>) {
            value = place_.text(field.name, field.get(from_), bounds.low, bounds.high);
        } else if constexpr (std::same_as<Bounds, Items>) {
            const auto& list = field.get(from_);
            if (!place_.count(field.name, static_cast<std::size_t>(list.size()), bounds.count))
                return;
            for (int i = 0; i < list.size(); ++i)
                struct_from(place_.at(field.name, i), list.Get(i), value.emplace_back(), Any{});
        } else if constexpr (is_list<T>) {
            read_list(field, value, bounds);
        } else {
            struct_from(place_.at(field.name), field.get(from_), value, bounds);
        }
    }

    template <class Flag, class Field, class T>
    void list_if_known(const Flag& flag, const Field& field, T& value, Items bounds) {
        if (flag.get(from_)) (*this)(field, value.emplace(), bounds);
    }

  private:
    template <class Field>
    bool present(const Field& field) const {
        if constexpr (requires { field.has(from_); })
            return field.has(from_);
        else
            return true;  // protobuf's own default is read, and checked as well
    }

    template <class T>
    T number(const char* name, std::int64_t value, Whole bounds) const {
        return from_plain<T>(place_.integer(name, value, bounds.low, bounds.high));
    }
    template <class T>
    T number(const char* name, std::int64_t value, Time bounds) const {
        return place_.duration(name, value, bounds.low, bounds.high);
    }

    template <class Field, class T, class Bounds>
    void read_list(const Field& field, T& list, const List<Bounds>& bounds) {
        const auto& from = field.get(from_);
        if (!place_.count(field.name, static_cast<std::size_t>(from.size()), bounds.count)) return;
        for (const auto& one : from) {
            if constexpr (std::same_as<Bounds, Text>)
                list.push_back(place_.text(field.name, one, bounds.each.low, bounds.each.high));
            else
                list.push_back(number<typename T::value_type>(field.name, one, bounds.each));
        }
    }

    template <class Inner, class T, class Fields>
    static void struct_from(const Place& place, const Inner& from, T& value, const Fields& fields) {
        ProtobufReader<Inner> inner(place, from);
        if constexpr (std::same_as<Fields, Any>)
            each_field(inner, value);
        else
            fields(inner, value);
    }

    const Place& place_;
    const Message& from_;
};

// One struct as one message, for what is no part of a table.
template <class T, class Message>
void write_fields(const T& value, Message& to, TextBudget& budget) {
    ProtobufWriter<Message> writer(to, budget);
    each_field(writer, value);
}
template <class T, class Message>
T read_fields(const Place& place, const Message& from) {
    T value{};
    ProtobufReader<Message> reader(place, from);
    each_field(reader, value);
    return value;
}

}  // namespace ddprun::rendezvous
