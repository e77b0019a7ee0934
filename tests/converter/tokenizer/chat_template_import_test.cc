#include "converter/tokenizer/chat_template_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/tokenizer/named_chat_templates.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int32_t kBosId = 1;
constexpr int32_t kEosId = 2;

// A vocabulary with these tokens, as user-defined ones, after <s> and </s>.
VocabularyDraft DraftWith(std::initializer_list<std::string_view> tokens) {
  VocabularyDraft draft;
  draft.SetPiece(0, "a", PieceType::kNormal);
  draft.SetPiece(kBosId, "<s>", PieceType::kControl);
  draft.SetPiece(kEosId, "</s>", PieceType::kControl);
  draft.rules.bos_token_id = kBosId;
  draft.rules.eos_token_id = kEosId;
  for (const std::string_view token : tokens) {
    draft.SetPiece(static_cast<uint32_t>(draft.pieces.size()), std::string(token),
                   PieceType::kUserDefined);
  }
  return draft;
}

std::string Named(const std::string& name) { return ReadChatTemplate(name).value().text; }

TEST(ChatTemplateImportTest, NothingOfNoTemplate) {
  VocabularyDraft draft = DraftWith({"<|im_end|>"});
  EXPECT_THAT(ImportChatTemplate("", &draft).value(), IsEmpty());
  EXPECT_EQ(draft.pieces[3].type, PieceType::kUserDefined);
}

TEST(ChatTemplateImportTest, WhatEndsAnAnswer) {
  VocabularyDraft draft = DraftWith({"<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|im_end|>\n"});
  EXPECT_THAT(ImportChatTemplate(Named("chatml"), &draft).value(), ElementsAre(4));
  EXPECT_THAT(ImportChatTemplate(Named("llama2"), &draft).value(), ElementsAre(kEosId));
  EXPECT_THAT(ImportChatTemplate(Named("llama3"), &draft).value(), ElementsAre(5));
  EXPECT_THAT(ImportChatTemplate("{{ messages[-1].content }}", &draft).value(), IsEmpty());
}

TEST(ChatTemplateImportTest, NobodyCanWriteTheTokensOfTurns) {
  VocabularyDraft draft =
      DraftWith({"<|im_start|>", "<|im_end|>", "<think>", "\n", "<|other|>", "[INST]"});
  ASSERT_TRUE(ImportChatTemplate("<think>" + Named("chatml"), &draft));
  EXPECT_EQ(draft.pieces[3].type, PieceType::kControl);
  EXPECT_EQ(draft.pieces[4].type, PieceType::kControl);
  // Visible tokens, tokens that are not marks, and tokens that the template does not write are
  // kept.
  for (size_t id = 5; id < 9; ++id) {
    EXPECT_EQ(draft.pieces[id].type, PieceType::kUserDefined) << draft.pieces[id].bytes;
  }
}

TEST(ChatTemplateImportTest, TagsOfReasoningStayVisible) {
  for (const std::string& source : {std::string(), "[THINK]" + Named("chatml")}) {
    VocabularyDraft draft = DraftWith({"[THINK]", "[/THINK]", "[INST]"});
    for (size_t id = 3; id < 6; ++id) draft.pieces[id].type = PieceType::kControl;
    ASSERT_TRUE(ImportChatTemplate(source, &draft));
    EXPECT_EQ(draft.pieces[3].type, PieceType::kUserDefined);
    EXPECT_EQ(draft.pieces[4].type, PieceType::kUserDefined);
    EXPECT_EQ(draft.pieces[5].type, PieceType::kControl);
  }
}

TEST(ChatTemplateImportTest, TemplatesThatTakeNoSystemMessage) {
  VocabularyDraft draft = DraftWith({"<turn>", "<end>"});
  const auto ids = ImportChatTemplate(
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
      "<turn>{{ m.content }}<end>{% endfor %}",
      &draft);
  ASSERT_TRUE(ids) << ids.error().message();
  EXPECT_THAT(*ids, ElementsAre(4));
  EXPECT_EQ(draft.pieces[3].type, PieceType::kControl);
}

TEST(ChatTemplateImportTest, LongTokensAreNotMarksOfTurns) {
  const std::string longest = "<" + std::string(254, '<') + ">";
  VocabularyDraft draft = DraftWith({longest, "<" + longest});
  ASSERT_TRUE(ImportChatTemplate(
      "<" + longest + "{% for m in messages %}{{ m.content }}{% endfor %}" + longest, &draft));
  EXPECT_EQ(draft.pieces[3].type, PieceType::kControl);
  EXPECT_EQ(draft.pieces[4].type, PieceType::kUserDefined);
}

TEST(ChatTemplateImportTest, TemplatesThatWriteMuchAreRefused) {
  VocabularyDraft draft = DraftWith({"<end>"});
  const auto import = [&](int times) {
    return ImportChatTemplate("{% for i in range(" + std::to_string(times) + ") %}" +
                                  std::string(1000, '<') + "{% endfor %}",
                              &draft);
  };
  const auto refused = import(300);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("writes 300000 bytes for short messages"));
  EXPECT_EQ(refused.error().remedy().kind, RemedyKind::kChatTemplate);
  const auto taken = import(200);
  EXPECT_TRUE(taken) << taken.error().message();
}

TEST(ChatTemplateImportTest, TemplatesThatCannotBeRendered) {
  VocabularyDraft draft = DraftWith({});
  for (const char* source : {"{{", "{{ nothing.x }}", "{% for i in range(10 ** 9) %}{% endfor %}",
                             "{{ raise_exception('never') }}"}) {
    const auto refused = ImportChatTemplate(source, &draft);
    ASSERT_FALSE(refused) << source;
    EXPECT_NE(refused.error().code(), ErrorCode::kUsage);
    EXPECT_THAT(refused.error().message(), HasSubstr("The chat template, line 1: "));
    EXPECT_EQ(refused.error().remedy().kind, RemedyKind::kChatTemplate);
  }
}

// What is noted about a template.
std::vector<std::string> NotesOf(std::string_view source) {
  VocabularyDraft draft = DraftWith({});
  std::vector<std::string> notes;
  const auto imported = ImportChatTemplate(source, &draft, &notes);
  EXPECT_TRUE(imported) << imported.error().message();
  return notes;
}

TEST(ChatTemplateImportTest, TemplatesThatNeedToolsGetSome) {
  const std::string source =
      "{% for tool in tools %}{{ tool.function.name }}{% endfor %}"
      "{% for m in messages %}{{ m.content }}<end>{% endfor %}";
  VocabularyDraft draft = DraftWith({"<end>"});
  const auto ids = ImportChatTemplate(source, &draft);
  ASSERT_TRUE(ids) << ids.error().message();
  EXPECT_THAT(*ids, ElementsAre(3));
  EXPECT_THAT(
      NotesOf(source),
      ElementsAre(HasSubstr("needs tools, and fails without them: The chat template, line")));
  EXPECT_THAT(NotesOf("{% if not tools %}{{ raise_exception('No tools') }}{% endif %}" + source),
              ElementsAre(HasSubstr("No tools")));
}

TEST(ChatTemplateImportTest, NotesWhatBecomesOfContents) {
  EXPECT_THAT(NotesOf("{% for m in messages %}{{ m.content }}{% endfor %}"), IsEmpty());
  EXPECT_THAT(NotesOf("Hello!"), ElementsAre(HasSubstr("does not write what the user says")));
  EXPECT_THAT(
      NotesOf("{% for m in messages %}{% for part in m.content %}"
              "{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}{% endfor %}"),
      ElementsAre(HasSubstr("reads contents only as lists of parts")));
}

TEST(NamedChatTemplatesTest, NamesAndFiles) {
  EXPECT_EQ(Named("none"), "");
  EXPECT_THAT(Named("chatml"), HasSubstr("<|im_start|>"));
  const auto missing = ReadChatTemplate("no-such-template");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kUsage);
  EXPECT_THAT(missing.error().message(), HasSubstr("chatml, llama2, llama3 or none"));
}

}  // namespace
}  // namespace cria
