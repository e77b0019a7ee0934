#include "cli/flags/template_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cria::cli {
namespace {

using testing::StartsWith;

TEST(TemplateOptionsTest, VariablesAreAJsonObject) {
  CommandLine program("program", "Does things.");
  TemplateOptions options;
  AddTemplateOptions(program, options);
  program.SetAction([]() -> Status { return {}; });
  const auto error_of = [&](const std::vector<std::string>& arguments) {
    const Status status = program.Run(arguments);
    return status ? "" : status.error().message();
  };
  EXPECT_EQ(error_of({"--chat-template-kwargs", R"({"a": 1})", "--think", "hide"}), "");
  EXPECT_EQ(options.variables, R"({"a": 1})");
  EXPECT_EQ(options.thinking, Thinking::kHide);
  EXPECT_THAT(error_of({"--chat-template-kwargs", "[]"}),
              StartsWith("--chat-template-kwargs: the template's variables are not a JSON object"));
  EXPECT_THAT(error_of({"--think", "maybe"}),
              StartsWith("--think: \"maybe\" is not off, on or hide"));
  EXPECT_NE(error_of({"--chat-template-kwargs", R"({"messages": []})"}), "");
  EXPECT_THAT(error_of({"--chat-template-kwargs", R"({"enable_thinking": "false"})"}),
              StartsWith("--chat-template-kwargs: the template's variable enable_thinking is "
                         "neither true nor false"));
}

}  // namespace
}  // namespace cria::cli
