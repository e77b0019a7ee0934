#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <format>
#include <string_view>

#include "cria/error.h"

namespace cria::c_api {

// Structs that callers fill or read begin with their size, by which a caller and a library of
// different versions understand each other: fields are only ever appended, and a new field's zero
// means what was before.

// The size that a struct had in its first version. A struct that grows keeps the number here; its
// end must not lie in padding, or two versions would have one size.
template <typename T>
inline constexpr size_t kFirstVersionBytes = sizeof(T);

// A size beyond this is no version's: struct_size was not set.
inline constexpr size_t kMaxStructBytes = 4096;

inline Status CheckStructSize(size_t struct_size, size_t least_bytes, std::string_view name) {
  if (struct_size >= least_bytes && struct_size <= kMaxStructBytes) return {};
  return Fail(ErrorCode::kUsage,
              std::format("struct_size of {} is {}; declare the struct with its ..._INIT", name,
                          struct_size));
}

// What a caller's struct says, as this version knows it: fields that the caller does not have are
// those of `defaults`. Null stands for the defaults.
template <typename T>
Result<T> ReadStruct(const T* given, const T& defaults, std::string_view name) {
  if (given == nullptr) return defaults;
  const size_t given_bytes = given->struct_size;
  CRIA_RETURN_IF_ERROR(CheckStructSize(given_bytes, kFirstVersionBytes<T>, name));
  const auto* bytes = reinterpret_cast<const std::byte*>(given);
  for (size_t i = sizeof(T); i < given_bytes; ++i) {
    if (bytes[i] == std::byte{0}) continue;
    return Fail(
        ErrorCode::kUnsupported,
        std::format("{} has options that this version does not know; use a newer libcria", name));
  }
  T known = defaults;
  std::memcpy(&known, bytes, std::min(given_bytes, sizeof(T)));
  return known;
}

// Fills as much of a caller's struct as it has, and zeros what this version does not know.
template <typename T>
Status WriteStruct(const T& values, T* out, std::string_view name) {
  const size_t out_bytes = out->struct_size;
  CRIA_RETURN_IF_ERROR(CheckStructSize(out_bytes, kFirstVersionBytes<T>, name));
  auto* bytes = reinterpret_cast<std::byte*>(out);
  const size_t known_bytes = std::min(out_bytes, sizeof(T));
  std::memcpy(bytes, &values, known_bytes);
  std::memset(bytes + known_bytes, 0, out_bytes - known_bytes);
  out->struct_size = out_bytes;
  return {};
}

}  // namespace cria::c_api
