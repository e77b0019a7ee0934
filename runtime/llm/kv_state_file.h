#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/output_file.h"
#include "core/platform.h"
#include "cria/error.h"
#include "decode/kv_state.h"

namespace cria {

// Writes the blocks of a state to a file from `offset` on, without a copy in memory, and the
// XXH3-64 of each block to `checksums`, which need no alignment.
Status WriteKvState(OutputFile& file, uint64_t offset, const KvState& state,
                    std::span<std::byte> checksums);

// Reads a block, which is at `offset` of the file, to its place in the state's sequence. Fails with
// kInvalidFile if the checksum differs or if a value is not a number.
Status ReadKvBlock(const platform::File& file, uint64_t offset, const KvState& state, size_t block,
                   uint64_t expected_checksum);

}  // namespace cria
