// The element types of libtorch and those of the trainer.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "trainer/group/data_type.h"

namespace ddprun::trainer {

// uint64 travels as int64: libtorch has known it only since 2.3, and nothing here computes with it.
constexpr c10::ScalarType scalar_type_of(DataType type) {
    switch (type) {
        case DataType::float32:
            return c10::ScalarType::Float;
        case DataType::float64:
            return c10::ScalarType::Double;
        case DataType::int32:
            return c10::ScalarType::Int;
        case DataType::int64:
        case DataType::uint64:
            return c10::ScalarType::Long;
        case DataType::uint8:
            return c10::ScalarType::Byte;
        case DataType::float16:
            return c10::ScalarType::Half;
        case DataType::bfloat16:
            return c10::ScalarType::BFloat16;
    }
    return c10::ScalarType::Undefined;
}

// Empty for a type that the trainer does not have, for example Bool.
constexpr std::optional<DataType> data_type_of(c10::ScalarType type) {
    switch (type) {
        case c10::ScalarType::Float:
            return DataType::float32;
        case c10::ScalarType::Double:
            return DataType::float64;
        case c10::ScalarType::Int:
            return DataType::int32;
        case c10::ScalarType::Long:
            return DataType::int64;
        case c10::ScalarType::Byte:
            return DataType::uint8;
        case c10::ScalarType::Half:
            return DataType::float16;
        case c10::ScalarType::BFloat16:
            return DataType::bfloat16;
        default:
            return std::nullopt;
    }
}

}  // namespace ddprun::trainer
