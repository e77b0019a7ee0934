#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "core/format.h"
#include "cria/error.h"

namespace cria::c_api {

// Structs that callers fill or read begin with their size, so that callers and libraries of
// different versions work together: fields are only ever appended, and a zero in a new field means
// the earlier behaviour.

// The size of a struct in its first version. If a struct grows, the old size is kept here. A struct
// must not end with padding, because a new field there would not change the size.
template <typename T>
inline constexpr size_t kFirstVersionBytes = sizeof(T);

// A larger struct_size was never set.
inline constexpr size_t kMaxStructBytes = 4096;

inline Status CheckStructSize(size_t struct_size, size_t min_bytes, std::string_view name) {
  if (struct_size >= min_bytes && struct_size <= kMaxStructBytes) return {};
  return Fail(
      ErrorCode::kUsage,
      Format("struct_size of {} is {}; declare the struct with its ..._INIT", name, struct_size));
}

// A copy of a caller's struct in this version's layout: fields that the caller's struct does not
// have get the values of `defaults`. Null means all defaults.
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
        Format("{} has options that this version does not know; use a newer libcria", name));
  }
  T known = defaults;
  std::memcpy(&known, bytes, std::min(given_bytes, sizeof(T)));
  return known;
}

// Fills the fields that a caller's struct has, and sets fields that this version does not know to
// 0.
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
