#include "text/reasoning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "golden/test_data.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/thinking_templates.h"

namespace cria {
namespace {

using support::kDeepSeekLike;
using support::kQwen3Like;

TEST(ThinkingTest, FindsTheVariableOfATemplate) {
  const auto variable = [](std::string_view source) {
    return ThinkingVariable(ChatTemplate(source));
  };
  EXPECT_EQ(variable(kQwen3Like), "enable_thinking");
  EXPECT_EQ(variable(kDeepSeekLike), "thinking");
  EXPECT_EQ(variable("{% set thinking = thinking if thinking is defined else true %}"), "thinking");
  EXPECT_EQ(variable("{% if message.thinking %}{% set thinking = message.thinking %}"
                     "{{ thinking }}{% endif %}"),
            "");
  EXPECT_EQ(variable(""), "");
}

TEST(ThinkingTest, FindsTheTagsOfATemplate) {
  const auto tags = [](std::string_view source) {
    return std::string(FindReasoningTags(ChatTemplate(source)).close);
  };
  EXPECT_EQ(tags(kQwen3Like), "</think>");
  EXPECT_EQ(tags("{{ m.content.split('[/THINK]')[1] }}"), "[/THINK]");
  EXPECT_EQ(tags("<|begin_of_thought|>"), "<|end_of_thought|>");
  EXPECT_EQ(tags("{# no tags #}"), "</think>");
  EXPECT_EQ(tags(""), "</think>");
}

TEST(ThinkingTest, FindsWhetherTheAnswerBeginsInside) {
  const auto opens = [](std::string_view source, std::string_view variables,
                        const std::string& question = "Why?") {
    const std::vector<ChatMessage> messages = {{"user", question}};
    return OpensReasoning(ChatTemplate(source), messages, variables);
  };
  EXPECT_FALSE(opens(kQwen3Like, ""));
  EXPECT_FALSE(opens(kQwen3Like, R"({"enable_thinking": false})"));
  EXPECT_FALSE(opens(kDeepSeekLike, ""));
  EXPECT_TRUE(opens(kDeepSeekLike, R"({"thinking": true})"));
  EXPECT_TRUE(opens("{{ messages[0].content }}[THINK]", ""));
  EXPECT_TRUE(opens("{{ messages[0].content }}<think> \r\n", ""));
  // Instructions that mention the tag, and the tag of another.
  EXPECT_FALSE(opens("{{ messages[0].content }} Use <think> first.\nAssistant: ", ""));
  EXPECT_FALSE(opens("{{ messages[0].content }}", "", "<think>"));
  EXPECT_FALSE(opens("{{ raise_exception('no') }}<think>", ""));
}

// What the filter passes on, joined, for an answer that arrives in these pieces.
std::pair<std::string, std::string> Filter(const std::vector<std::string_view>& pieces,
                                           bool begins_in_reasoning = false,
                                           const ReasoningTags& tags = kReasoningTags[0]) {
  std::array<std::string, 2> parts;
  ReasoningFilter filter(tags, begins_in_reasoning, [&](AnswerPart part, std::string_view text) {
    EXPECT_FALSE(text.empty());
    // The reasoning comes first.
    EXPECT_TRUE(part == AnswerPart::kAnswer || parts[1].empty());
    parts[static_cast<size_t>(part)] += text;
  });
  for (const std::string_view piece : pieces) filter.Append(piece);
  filter.Flush();
  return {parts[0], parts[1]};
}

struct FilterCase {
  std::string text;
  bool begins_in_reasoning;
  std::string reasoning;
  std::string answer;
};

std::vector<FilterCase> FilterCases() {
  const std::string spaces(ReasoningFilter::kMaxHeldBytes, ' ');
  return {
      {"", false, "", ""},
      {"plain", false, "", "plain"},
      {"\n plain <think>a</think>\n", false, "", "\n plain <think>a</think>\n"},
      {"<think>\nwhy\n</think>\n\nso", false, "why", "so"},
      {" \r\n<think>why</think>so\n", false, "why", "so\n"},
      {"<think>\n\n</think>\n\nso", false, "", "so"},
      {"<think>a\n\n\n\n\n\n\n\n\n\nb \n\n</think> so", false, "a\n\n\n\n\n\n\n\n\n\nb ", " so"},
      {"<think>a</thin</think </think>b</think>", false, "a</thin</think ", "b</think>"},
      {"<think>a <think> b</think>c", false, "a <think> b", "c"},
      {"<<think>a", false, "", "<<think>a"},
      {"<thinking>a", false, "", "<thinking>a"},
      {"<thin", false, "", "<thin"},
      {" \n", false, "", " \n"},
      // Without an end.
      {"<think>", false, "", ""},
      {"<think>why\n\n", false, "why", ""},
      {"<think>why\n</thi", false, "why\n</thi", ""},
      // Inside from the beginning.
      {"\nwhy\n</think>\n\nso", true, "why", "so"},
      {" why</think>so", true, " why", "so"},
      {"<think>why</think>so", true, "why", "so"},
      {"<thin ice\n<", true, "<thin ice\n<", ""},
      {"</think>\nso", true, "", "so"},
      {"\n<", true, "<", ""},
      {"", true, "", ""},
      // White space has a limit.
      {spaces + "<think>a</think>b", false, "a", "b"},
      {spaces + "\n<think>a</think>b", false, "", spaces + "\n<think>a</think>b"},
  };
}

TEST(ReasoningFilterTest, DividesAnAnswer) {
  for (const FilterCase& tested : FilterCases()) {
    EXPECT_EQ(Filter({tested.text}, tested.begins_in_reasoning),
              std::pair(tested.reasoning, tested.answer))
        << tested.text;
  }
}

TEST(ReasoningFilterTest, PiecesMayBeDividedAnywhere) {
  std::mt19937 random(1);
  for (const FilterCase& tested : FilterCases()) {
    for (int times = 0; times < 50; ++times) {
      const size_t longest = 1 + times % 7;
      std::vector<std::string_view> pieces;
      for (std::string_view rest = tested.text; !rest.empty();) {
        pieces.push_back(rest.substr(0, random() % (longest + 1)));
        rest.remove_prefix(pieces.back().size());
      }
      ASSERT_EQ(Filter(pieces, tested.begins_in_reasoning),
                std::pair(tested.reasoning, tested.answer))
          << tested.text;
    }
  }
}

TEST(ReasoningFilterTest, EveryPairOfTags) {
  for (const ReasoningTags& tags : kReasoningTags) {
    const std::string text = std::string(tags.open) + "\nwhy\n" + std::string(tags.close) + "\nso";
    EXPECT_EQ(Filter({text}, false, tags), std::pair(std::string("why"), std::string("so")));
    // What the filter relies on: a tag cannot begin again inside of itself.
    EXPECT_EQ(std::ranges::count(tags.open, tags.open.front()), 1);
    EXPECT_EQ(std::ranges::count(tags.close, tags.close.front()), 1);
  }
}

TEST(ReasoningFilterTest, TextIsPassedOnAsSoonAsItIsCertain) {
  std::string passed;
  ReasoningFilter filter(kReasoningTags[0], false,
                         [&](AnswerPart, std::string_view text) { passed += text; });
  const auto after = [&](std::string_view piece) {
    filter.Append(piece);
    return std::exchange(passed, "");
  };
  EXPECT_EQ(after("<think>"), "");
  EXPECT_TRUE(filter.is_in_reasoning());
  EXPECT_EQ(after("one"), "one");
  EXPECT_EQ(after(" two\n"), " two");
  EXPECT_EQ(after("three</"), "\nthree");
  EXPECT_EQ(after("x"), "</x");
  EXPECT_EQ(after("</think>"), "");
  EXPECT_FALSE(filter.is_in_reasoning());
  EXPECT_EQ(after("\n"), "");
  EXPECT_EQ(after("four <"), "four <");
}

// No template of `folder` has a switch, and only that of this name mentions the tags.
void ExpectNoSwitch(const std::filesystem::path& folder, const std::string& with_tags) {
  size_t num_with_tags = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    SCOPED_TRACE(entry.path());
    const std::string source = support::ReadFile(entry.path());
    EXPECT_EQ(ThinkingVariable(ChatTemplate(source)), "");
    const bool has_tags = source.contains(FindReasoningTags(ChatTemplate(source)).close);
    EXPECT_EQ(has_tags, entry.path().stem() == with_tags);
    num_with_tags += has_tags ? 1 : 0;
  }
  EXPECT_EQ(num_with_tags, 1u);
}

TEST(ThinkingTest, OwnTemplates) {
  ExpectNoSwitch(support::SourcePath("tests/golden/chat"), "reasoning");
}

TEST(ThinkingTest, RealTemplates) {
  CRIA_NEEDS_TEST_DATA("chat/DeepSeek-R1-Distill-Llama-8B.jinja");
  ExpectNoSwitch(ExternalTestData() / "chat", "DeepSeek-R1-Distill-Llama-8B");
}

}  // namespace
}  // namespace cria
