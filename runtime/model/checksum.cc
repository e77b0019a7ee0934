#include "model/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <string_view>

namespace cria {

// The library's state needs 64-byte alignment, which its type declares.
struct Checksum64::State {
  XXH3_state_t xxh3;
};

Checksum64::Checksum64() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }
Checksum64::Checksum64(Checksum64&&) noexcept = default;
Checksum64& Checksum64::operator=(Checksum64&&) noexcept = default;
Checksum64::~Checksum64() = default;

void Checksum64::Update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

uint64_t Checksum64::Finish() const { return XXH3_64bits_digest(&state_->xxh3); }

uint64_t ChecksumOf(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Digest Digest128(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Digest digest;
  std::copy_n(canonical.digest, digest.size(), digest.begin());
  return digest;
}

std::string DigestText(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace cria
