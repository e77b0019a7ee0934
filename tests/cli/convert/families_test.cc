// docs/models.md has what `cria-convert families` prints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace cria {
namespace {

using testing::HasSubstr;

TEST(FamiliesCommand, PrintsWhatThePageSays) {
  const support::RunResult printed = support::RunProgram({support::kConvertProgram, "families"});
  ASSERT_EQ(printed.exit_code, 0) << printed.error;
  EXPECT_THAT(support::ReadFile(support::SourcePath("docs/models.md")), HasSubstr(printed.output))
      << "write what the command prints into the page";
}

// A family has a name in GGUF files even if several share it.
TEST(FamiliesCommand, NamesWhatAreOfSeveralFamilies) {
  const std::string text = support::RunProgram({support::kConvertProgram, "families"}).output;
  EXPECT_THAT(text, HasSubstr("\n| `LlamaForCausalLM` | `llama` | `llama` |  |\n"));
  EXPECT_THAT(text, HasSubstr("\n| `MistralForCausalLM` | `mistral` | `llama` |  |\n"));
  EXPECT_THAT(text, HasSubstr("\n| `MixtralForCausalLM` | `mixtral` | `llama` | experts |\n"));
  EXPECT_THAT(text, HasSubstr("\n| `Lfm3ForCausalLM` | `lfm3` | – | short convolutions |\n"));
  EXPECT_THAT(text, HasSubstr("| `granite`, `granitehybrid` | experts, Mamba-2 |\n"));
  EXPECT_THAT(text, HasSubstr("\n| `Gemma3ForConditionalGeneration` | `gemma3` | "
                              "`Gemma3ForCausalLM` |\n"));
  EXPECT_THAT(text, HasSubstr("\n| `LlavaForConditionalGeneration` | `llava` | as its own "
                              "`model_type` says |\n"));
}

}  // namespace
}  // namespace cria
