// cria-serve --prefix-cache FOLDER[:SIZE]

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/demo_model.h"
#include "cli/serve/json_request.h"
#include "cli/serve/server_program.h"
#include "server/http/raw_client.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria::tests {
namespace {

namespace fs = std::filesystem;
using support::RawClient;
using testing::HasSubstr;

// A prompt that is long enough to be kept, and an answer that is the same each time.
nlohmann::json LongQuestion() {
  std::string text;
  while (text.size() < 1100) text += "Hello! Who are you? ";
  return {
      {"temperature", 0}, {"max_tokens", 8}, {"messages", {{{"role", "user"}, {"content", text}}}}};
}

// What a server with these options answers before it is ended.
nlohmann::json AskOnce(const std::string& prefix_cache, std::string* output = nullptr) {
  ServerProgram server({"--port", "0", "-c", "512", "--prefix-cache", prefix_cache});
  const auto answer =
      RawClient::ToPort(server.port()).Ask(JsonRequest("/v1/chat/completions", LongQuestion()));
  EXPECT_EQ(answer.status, 200) << answer.body;
  server.Signal(SIGTERM);
  EXPECT_EQ(server.WaitForEnd(), 0);
  if (output != nullptr) *output = server.output();
  return nlohmann::json::parse(answer.body);
}

size_t CachedTokens(const nlohmann::json& answer) {
  return answer.at("usage").at("prompt_tokens_details").at("cached_tokens");
}

std::string TextOf(const nlohmann::json& answer) {
  return answer.at("choices").at(0).at("message").at("content");
}

// The file of a folder that has one; "" if it has none.
fs::path OnlyFile(const fs::path& folder) {
  const auto entries = fs::directory_iterator(folder);
  return entries == fs::directory_iterator() ? fs::path() : entries->path();
}

support::RunResult StartWith(const std::string& prefix_cache) {
  return support::RunProgram(
      {support::kServeProgram, "-m", DemoModel(), "--port", "0", "--prefix-cache", prefix_cache});
}

TEST(PrefixCache, PromptsAreReadAfterARestart) {
  const support::TemporaryDirectory folder;
  const std::string prompts = folder / "prompts";
  const nlohmann::json first = AskOnce(prompts + ":50M");
  EXPECT_EQ(CachedTokens(first), 0u);
  ASSERT_FALSE(OnlyFile(prompts).empty());
  const nlohmann::json second = AskOnce(prompts + ":50M");
  const size_t prompt_tokens = second.at("usage").at("prompt_tokens");
  // The last token is computed, so that there are logits.
  EXPECT_EQ(CachedTokens(second), prompt_tokens - 1);
  EXPECT_EQ(TextOf(second), TextOf(first));
}

TEST(PrefixCache, DamagedPromptsAreComputedAgain) {
  const support::TemporaryDirectory folder;
  const std::string prompts = folder / "prompts";
  const nlohmann::json first = AskOnce(prompts);
  const fs::path file = OnlyFile(prompts);
  ASSERT_FALSE(file.empty());
  fs::resize_file(file, fs::file_size(file) - 1);
  std::string output;
  const nlohmann::json second = AskOnce(prompts, &output);
  EXPECT_EQ(CachedTokens(second), 0u);
  EXPECT_EQ(TextOf(second), TextOf(first));
  EXPECT_THAT(output, HasSubstr("was removed and is not used"));
}

TEST(PrefixCache, WritesNoFileThatIsLargerThanItsBound) {
  const support::TemporaryDirectory folder;
  const std::string prompts = folder / "prompts";
  AskOnce(prompts + ":1K");
  EXPECT_TRUE(fs::is_empty(prompts));
}

TEST(PrefixCache, RefusesValuesThatAreNoFolderAndSize) {
  const support::TemporaryDirectory folder;
  for (const char* const size : {"0", "0G", "", "x", "-1", "1Q", "99999999999999999999"}) {
    const auto result = StartWith((folder / "prompts:").string() + size);
    EXPECT_EQ(result.exit_code, 2) << size;
    EXPECT_THAT(result.error, HasSubstr("--prefix-cache")) << size;
  }
  for (const char* const value : {"", ":1G", ":"}) {
    EXPECT_EQ(StartWith(value).exit_code, 2) << value;
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(PrefixCache, RefusesFoldersThatItCannotUse) {
  const support::TemporaryDirectory folder;
  std::ofstream(folder / "file") << "text";
  // Nobody can write into /proc, not even root.
  for (const std::string& path :
       {std::string(folder / "file"), std::string(folder / "file/prompts"),
        std::string(folder / "missing/prompts"), std::string("/proc/prompts")}) {
    const auto result = StartWith(path + ":1M");
    EXPECT_EQ(result.exit_code, 1) << path;
    EXPECT_THAT(result.error, HasSubstr(path + ": cannot")) << path;
  }
  fs::create_directory(folder / "open");
  fs::permissions(folder / "open", fs::perms::all);
  EXPECT_THAT(StartWith(folder / "open").error, HasSubstr("others may write into this folder"));
}

TEST(PrefixCache, TheFolderMayHaveAColon) {
  const support::TemporaryDirectory folder;
  for (const char* const value : {"a:b:1M", "c:d/"}) {
    const std::string path = (folder / value).string();
    ServerProgram server({"--port", "0", "--prefix-cache", path});
    server.Signal(SIGTERM);
    EXPECT_EQ(server.WaitForEnd(), 0);
  }
  EXPECT_TRUE(fs::is_directory(folder / "a:b"));
  EXPECT_TRUE(fs::is_directory(folder / "c:d"));
}

}  // namespace
}  // namespace cria::tests
