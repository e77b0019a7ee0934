#include "server/http/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

class ApiKeysTest : public testing::Test {
 protected:
  Result<ApiKeys> Read(const std::string& text) const {
    const std::string path = folder_ / "keys";
    std::ofstream(path) << text;
    return ApiKeys::Read(path);
  }

  support::TemporaryDirectory folder_;
};

TEST_F(ApiKeysTest, HasTheKeysOfTheLines) {
  const ApiKeys keys = Unwrap(Read("# of the kitchen\nfirst\r\n\nsecond-key"));
  EXPECT_FALSE(keys.empty());
  EXPECT_TRUE(keys.Have("first"));
  EXPECT_TRUE(keys.Have("second-key"));
  for (const char* const wrong : {"", "firs", "firstt", "firstfirst", "First", "# of the kitchen",
                                  "second", "first\r", "second-kex"}) {
    EXPECT_FALSE(keys.Have(wrong)) << wrong;
  }
}

TEST_F(ApiKeysTest, AFileWithoutAKeyIsRefused) {
  for (const char* const text : {"", "\n\n", "# nothing\n"}) {
    const Result<ApiKeys> keys = Read(text);
    ASSERT_FALSE(keys);
    EXPECT_THAT(keys.error().message(), HasSubstr("has no key"));
  }
}

TEST_F(ApiKeysTest, AKeyThatNoHeaderHoldsIsRefusedAndNotShown) {
  const Result<ApiKeys> keys = Read("good\nsecret word\n");
  ASSERT_FALSE(keys);
  EXPECT_THAT(keys.error().message(), HasSubstr("line 2"));
  EXPECT_THAT(keys.error().message(), testing::Not(HasSubstr("secret")));
  EXPECT_FALSE(Read("tab\tbed\n"));
  EXPECT_FALSE(Read("\xC3\xA4\n"));
}

TEST_F(ApiKeysTest, SomethingElseThanAFileOfKeysIsRefused) {
  EXPECT_FALSE(Read(std::string(100'000, 'x')));
  EXPECT_FALSE(ApiKeys::Read(folder_ / "missing"));
}

TEST(EqualsInConstantTime, IsEquality) {
  EXPECT_TRUE(EqualsInConstantTime("key", "key"));
  EXPECT_FALSE(EqualsInConstantTime("kez", "key"));
  EXPECT_FALSE(EqualsInConstantTime("", "key"));
  EXPECT_FALSE(EqualsInConstantTime("keykey", "key"));
  // An empty secret would let everybody in.
  EXPECT_FALSE(EqualsInConstantTime("", ""));
}

}  // namespace
}  // namespace cria::server
