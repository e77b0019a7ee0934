#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/collective.h"

namespace cria::ranks {

// How the numbers of a sum are laid out in a message. kF32: as they are. The others: in blocks of
// kWireBlockValues, of which the last one may be shorter. A block begins with its scale in
// bfloat16, and its numbers, in f16 or int8, are multiples of that. The scales of f16 are powers of
// two, with which the block's largest number is from 2^14 up to 2^15 in f16, so that blocks of
// large and of small numbers are rounded alike. A number that is not finite makes a block of int8
// one of NaN.
inline constexpr size_t kWireBlockValues = 32;

uint64_t WireBytes(size_t num_values, WireType type);

// Writes values, [WireBytes(values.size())].
void ToWire(std::span<const float> values, WireType type, std::span<std::byte> bytes);
// Reads values that ToWire wrote, or adds them to `values`. To begin in the middle of a message,
// begin at a block.
void FromWire(std::span<const std::byte> bytes, WireType type, std::span<float> values);
void AddFromWire(std::span<const std::byte> bytes, WireType type, std::span<float> values);

}  // namespace cria::ranks
