#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cria::ops {

// The sum, modulo 2^64, of the bytes read as words of 64 bits in the machine's byte order, the last
// one padded with zeros. For benchmarks: it uses every byte and costs less than reading it from
// memory.
uint64_t SumOfWords(std::span<const std::byte> bytes);

}  // namespace cria::ops
