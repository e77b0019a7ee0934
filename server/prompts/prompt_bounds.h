#pragma once

#include <cstddef>
#include <cstdint>

namespace cria::server {

// Bounds of the files of prompts, from which a plan is made without linking the server.

inline constexpr uint64_t kDefaultPromptBytes = 1'000'000'000;  // All files together.
inline constexpr size_t kMaxPromptFiles = 256;
inline constexpr size_t kMaxPromptTokens = size_t{1} << 18;  // All files together.
// What a file has before its keys and values: tokens, and checksums of blocks. A text that needs
// more is not written. Keys and values are written from where they are in the cache, and read to
// there.
inline constexpr uint64_t kMaxPromptMetadataBytes = uint64_t{1} << 20;
inline constexpr size_t kPromptEntryBytes = 64;
// What the thread that gives files their names touches of its stack.
inline constexpr uint64_t kPromptThreadBytes = uint64_t{32} << 10;

constexpr uint64_t PromptFilesBytes() {
  return kMaxPromptFiles * kPromptEntryBytes + kMaxPromptTokens * sizeof(int32_t) +
         kMaxPromptMetadataBytes + kPromptThreadBytes;
}

}  // namespace cria::server
