#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace cria {

// XXH3-64 of bytes that are added in parts.
class Checksum64 {
 public:
  Checksum64();
  Checksum64(Checksum64&&) noexcept;
  Checksum64& operator=(Checksum64&&) noexcept;
  ~Checksum64();

  void Update(std::span<const std::byte> bytes);
  // The checksum of all bytes added so far. More may follow.
  uint64_t Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

uint64_t ChecksumOf(std::span<const std::byte> bytes);

// XXH3-128 in its canonical (big-endian) byte order, the same on every machine.
using Digest = std::array<uint8_t, 16>;
Digest Digest128(std::span<const std::byte> bytes);
// As 32 hexadecimal digits.
std::string DigestText(const Digest& digest);

}  // namespace cria
