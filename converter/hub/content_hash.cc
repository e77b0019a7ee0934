#include "converter/hub/content_hash.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "core/format.h"

namespace cria::hub {

std::optional<ExpectedHash> HashOfDigits(std::string_view digits) {
  constexpr size_t kSha256Digits = 64;
  constexpr size_t kSha1Digits = 40;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!std::ranges::all_of(digits, is_digit)) return std::nullopt;
  if (digits.size() == kSha256Digits) {
    return ExpectedHash{ExpectedHash::Kind::kSha256, std::string(digits)};
  }
  if (digits.size() == kSha1Digits) {
    return ExpectedHash{ExpectedHash::Kind::kGitBlob, std::string(digits)};
  }
  return std::nullopt;
}

ContentHash::ContentHash(ExpectedHash::Kind kind, uint64_t size_bytes)
    : context_(EVP_MD_CTX_new()) {
  const bool is_git = kind == ExpectedHash::Kind::kGitBlob;
  EVP_DigestInit_ex(context_, is_git ? EVP_sha1() : EVP_sha256(), nullptr);
  if (!is_git) return;
  const std::string head = Format("blob {}", size_bytes);
  EVP_DigestUpdate(context_, head.c_str(), head.size() + 1);
}

ContentHash::~ContentHash() { EVP_MD_CTX_free(context_); }

void ContentHash::Add(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context_, bytes.data(), bytes.size());
  num_bytes_ += bytes.size();
}

std::string ContentHash::Finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int num_digest_bytes = 0;
  // If OpenSSL refuses the hash, no digits are returned, which match no file.
  if (EVP_DigestFinal_ex(context_, digest.data(), &num_digest_bytes) != 1) return "";
  std::string digits;
  for (unsigned int i = 0; i < num_digest_bytes; ++i) digits += Format("{:02x}", digest[i]);
  return digits;
}

}  // namespace cria::hub
