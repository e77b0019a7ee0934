#include "converter/hub/content_hash.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

namespace cria::hub {
namespace {

std::string HashInParts(ExpectedHash::Kind kind, std::string_view content, size_t part_bytes) {
  ContentHash hash(kind, content.size());
  for (std::string_view rest = content; !rest.empty();) {
    const std::string_view part = rest.substr(0, part_bytes);
    hash.Add(std::as_bytes(std::span(part)));
    rest.remove_prefix(part.size());
  }
  EXPECT_EQ(hash.num_bytes(), content.size());
  return hash.Finish();
}

TEST(ContentHash, HasTheValuesOfTheStandardAndOfGit) {
  using Kind = ExpectedHash::Kind;
  for (const size_t part_bytes : {1, 2, 100}) {
    // FIPS 180-4's example.
    EXPECT_EQ(HashInParts(Kind::kSha256, "abc", part_bytes),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    // `printf 'hello\n' | git hash-object --stdin`
    EXPECT_EQ(HashInParts(Kind::kGitBlob, "hello\n", part_bytes),
              "ce013625030ba8dba906f756967f9e9ca394464a");
  }
  EXPECT_EQ(HashInParts(Kind::kGitBlob, "", 1), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

TEST(ContentHash, TheNumberOfDigitsSaysWhichHashItIs) {
  EXPECT_EQ(HashOfDigits(std::string(64, 'a'))->kind, ExpectedHash::Kind::kSha256);
  EXPECT_EQ(HashOfDigits(std::string(40, '0'))->kind, ExpectedHash::Kind::kGitBlob);
  for (const size_t digits : {0, 39, 41, 63, 65}) {
    EXPECT_FALSE(HashOfDigits(std::string(digits, 'a'))) << digits;
  }
  EXPECT_FALSE(HashOfDigits(std::string(40, 'g')));
}

}  // namespace
}  // namespace cria::hub
