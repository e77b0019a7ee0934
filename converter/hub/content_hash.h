#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's.

namespace cria::hub {

// A hash that the hub gives for a file, in lower-case hexadecimal digits.
struct ExpectedHash {
  enum class Kind : uint8_t {
    kSha256,   // A hash of the content, for files in the hub's storage of large files.
    kGitBlob,  // Git's id of the content: SHA-1 of "blob SIZE", a zero byte, and the content.
  };
  Kind kind;
  std::string digits;
};

// The hash with these digits, if they are as many as one of the kinds has.
std::optional<ExpectedHash> HashOfDigits(std::string_view digits);

// Computes a hash of content that arrives in parts.
class ContentHash {
 public:
  // `size_bytes` is the size of the whole content, which git's id contains.
  ContentHash(ExpectedHash::Kind kind, uint64_t size_bytes);
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void Add(std::span<const std::byte> bytes);
  uint64_t num_bytes() const { return num_bytes_; }
  // The digits of everything that was added; called once, at the end.
  std::string Finish();

 private:
  evp_md_ctx_st* context_;
  uint64_t num_bytes_ = 0;
};

}  // namespace cria::hub
