// The element types of tensors: their sizes, their safetensors names, and the mapping from C++
// types.
//
// The names are those of the safetensors format ("F32"), which Python's readers know. The two
// 16-bit floats need C++ types of their own: Half is the compiler's IEEE binary16, BFloat16 is the
// upper half of a float. Both compute in float and round to nearest, ties to even.
//
// Pure.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ddprun::trainer {

// uint64 can be moved and saved, but no reduction takes it (operation.h).
enum class DataType {
    float32,
    float64,
    int32,
    int64,
    uint8,
    uint64,
    float16,
    bfloat16,
};

using Half = _Float16;

// A float without its lower 16 bits: the range of float, 8 bits of precision.
struct BFloat16 {
    BFloat16() = default;
    explicit BFloat16(float value) {
        const auto raw = std::bit_cast<std::uint32_t>(value);
        // Adding 0x7FFF plus the lowest kept bit rounds to nearest, ties to even. A NaN is not
        // rounded: the carry could turn it into infinity. Bit 0x40 makes it a quiet NaN, also when
        // all kept bits are 0.
        bits = static_cast<std::uint16_t>(
            std::isnan(value) ? (raw >> 16) | 0x40 : (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16);
    }
    // Exact: every bfloat16 is a float.
    operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

    std::uint16_t bits = 0;
};

// Bytes of one element.
constexpr std::size_t size_of(DataType type) {
    switch (type) {
        case DataType::float32:
        case DataType::int32:
            return 4;
        case DataType::float64:
        case DataType::int64:
        case DataType::uint64:
            return 8;
        case DataType::uint8:
            return 1;
        case DataType::float16:
        case DataType::bfloat16:
            return 2;
    }
    return 0;
}

// The name in the safetensors format. Messages use it too.
constexpr std::string_view to_string(DataType type) {
    switch (type) {
        case DataType::float32:
            return "F32";
        case DataType::float64:
            return "F64";
        case DataType::int32:
            return "I32";
        case DataType::int64:
            return "I64";
        case DataType::uint8:
            return "U8";
        case DataType::uint64:
            return "U64";
        case DataType::float16:
            return "F16";
        case DataType::bfloat16:
            return "BF16";
    }
    return "?";
}

// The type for a safetensors name. Empty for a type that this library does not support, for example
// "F8_E4M3".
constexpr std::optional<DataType> data_type_of(std::string_view name) {
    for (DataType type :
         {DataType::float32, DataType::float64, DataType::int32, DataType::int64, DataType::uint8,
          DataType::uint64, DataType::float16, DataType::bfloat16}) {
        if (to_string(type) == name) return type;
    }
    return std::nullopt;
}

// The type for a C++ element type: data_type<float>() is float32.
template <class T>
constexpr DataType data_type();
template <>
constexpr DataType data_type<float>() {
    return DataType::float32;
}
template <>
constexpr DataType data_type<double>() {
    return DataType::float64;
}
template <>
constexpr DataType data_type<std::int32_t>() {
    return DataType::int32;
}
template <>
constexpr DataType data_type<std::int64_t>() {
    return DataType::int64;
}
template <>
constexpr DataType data_type<std::uint8_t>() {
    return DataType::uint8;
}
template <>
constexpr DataType data_type<std::uint64_t>() {
    return DataType::uint64;
}
template <>
constexpr DataType data_type<Half>() {
    return DataType::float16;
}
template <>
constexpr DataType data_type<BFloat16>() {
    return DataType::bfloat16;
}

// Integers have no average and no gradient.
constexpr bool is_integer(DataType type) {
    return type == DataType::int32 || type == DataType::int64 || type == DataType::uint8 ||
           type == DataType::uint64;
}

}  // namespace ddprun::trainer
