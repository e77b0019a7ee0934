#pragma once

#include <cstdint>
#include <random>

namespace cria {

// A random seed for a sampler, of 32 bits, so that people can type it.
inline uint32_t RandomSeed() { return std::random_device()(); }

}  // namespace cria
