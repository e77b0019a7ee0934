#include "converter/tokenizer/tokenizer_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "converter/tokenizer/import_tokenizer.h"
#include "converter/tokenizer/named_chat_templates.h"
#include "text/tokenizer.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kTokenizerJson = R"({
  "added_tokens": [{"id": 3, "content": "<|bos|>", "special": true},
                   {"id": 4, "content": "<|end|>", "special": true},
                   {"id": 5, "content": "<|im_start|>", "special": false},
                   {"id": 6, "content": "<|im_end|>", "special": true}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";

constexpr const char* kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}";

// A checkpoint folder with a few text files.
class TokenizerImportTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/tokenizer_importXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream file(folder_ / name, std::ios::binary);
    file << text;
    ASSERT_TRUE(file);
  }
  Result<ImportedTokenizer> Import(size_t vocab_size = 8) {
    return ImportTokenizerOf(folder_, vocab_size);
  }
  ImportedTokenizer MustImport() {
    auto imported = Import();
    if (!imported) {
      ADD_FAILURE() << imported.error().message();
      return {};
    }
    return *std::move(imported);
  }
  // The sentence of the error with which the import must fail.
  std::string Refusal(size_t vocab_size = 8) {
    const auto imported = Import(vocab_size);
    if (imported) ADD_FAILURE() << "was imported";
    return imported ? "" : imported.error().message();
  }

  std::filesystem::path folder_;
};

TEST_F(TokenizerImportTest, SaysWhichFilesItLooksFor) {
  const std::string sentence = Refusal();
  EXPECT_THAT(sentence, HasSubstr("tokenizer.model"));
  EXPECT_THAT(sentence, HasSubstr("tokenizer.json"));
  EXPECT_THAT(sentence, HasSubstr(folder_.string()));
}

TEST_F(TokenizerImportTest, TokenizerJsonAlone) {
  Write("tokenizer.json", kTokenizerJson);
  const ImportedTokenizer imported = MustImport();
  EXPECT_EQ(imported.chat_template_source, "");
  EXPECT_FALSE(imported.vocabulary.rules.add_bos_token);
  EXPECT_THAT(imported.stop_token_ids, ElementsAre(4, 6));
  EXPECT_EQ(imported.vocabulary.piece_types.size(), 8u);
  EXPECT_EQ(imported.vocabulary.piece_types[7], PieceType::kUnused);
  EXPECT_EQ(imported.vocabulary.piece_types[5], PieceType::kUserDefined);
}

TEST_F(TokenizerImportTest, SettingsOfEveryFile) {
  Write("tokenizer.json", kTokenizerJson);
  Write("tokenizer_config.json", std::string(R"({"add_bos_token": true, "bos_token": "<|bos|>",
    "eos_token": {"content": "<|end|>"},
    "added_tokens_decoder": {"7": {"content": "<|more|>", "special": true}},
    "chat_template": [{"name": "tools", "template": "x"}, {"name": "default", "template": ")") +
                                     kChatMl + "\"}]}");
  Write("generation_config.json", R"({"eos_token_id": [0, 4]})");
  Write("config.json", R"({"eos_token_id": 1, "bos_token_id": 0})");
  const ImportedTokenizer imported = MustImport();
  EXPECT_TRUE(imported.vocabulary.rules.add_bos_token);
  EXPECT_EQ(imported.vocabulary.rules.bos_token_id, 3);
  EXPECT_EQ(imported.vocabulary.piece_types[7], PieceType::kControl);
  EXPECT_THAT(imported.stop_token_ids, ElementsAre(0, 1, 4, 6));
  EXPECT_EQ(imported.vocabulary.rules.eos_token_id, 4);
  EXPECT_THAT(imported.chat_template_source, HasSubstr("<|im_start|>"));
  EXPECT_THAT(imported.notes, ElementsAre((folder_ / "tokenizer_config.json").string() +
                                          ": of chat_template, the model gets \"default\", and not "
                                          "\"tools\""));
  // The file does not call it special, but text of users must not become it.
  EXPECT_EQ(imported.vocabulary.piece_types[5], PieceType::kControl);
}

// An answer in the Harmony format is several messages that end with <|end|>.
TEST_F(TokenizerImportTest, AnswersOfHarmonyEndWithReturnOrACall) {
  Write("tokenizer.json", R"({
    "added_tokens": [{"id": 3, "content": "<|return|>", "special": true},
                     {"id": 4, "content": "<|end|>", "special": true},
                     {"id": 5, "content": "<|start|>", "special": true},
                     {"id": 6, "content": "<|call|>", "special": true}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  Write("tokenizer_config.json", R"({"eos_token": "<|return|>", "chat_template":
    "{% for m in messages %}<|start|>{{ m.role }}{{ m.content }}<|end|>{% endfor %}"})");
  EXPECT_THAT(MustImport().stop_token_ids, ElementsAre(3, 6));
}

TEST_F(TokenizerImportTest, SpecialTokensMapStandsIn) {
  Write("tokenizer.json", kTokenizerJson);
  Write("special_tokens_map.json", R"({"bos_token": {"content": "<|bos|>"},
                                       "eos_token": "<|end|>"})");
  const ImportedTokenizer imported = MustImport();
  EXPECT_EQ(imported.vocabulary.rules.bos_token_id, 3);
  EXPECT_FALSE(imported.vocabulary.rules.add_bos_token);
  EXPECT_THAT(imported.stop_token_ids, ElementsAre(4, 6));
}

// Hugging Face's tokenizers look for these tokens, too, if no file adds them.
TEST_F(TokenizerImportTest, AdditionalSpecialTokensAreSpecial) {
  Write("tokenizer.json", kTokenizerJson);
  Write("tokenizer_config.json",
        R"({"additional_special_tokens": ["ab", {"content": "<|im_start|>"}, "<|unknown|>"]})");
  EXPECT_EQ(MustImport().vocabulary.piece_types[2], PieceType::kControl);
  EXPECT_EQ(MustImport().vocabulary.piece_types[5], PieceType::kUserDefined);
  EXPECT_EQ(MustImport().vocabulary.piece_types[0], PieceType::kNormal);
  Write("tokenizer_config.json", R"({"extra_special_tokens": {"image_token": "<image>"}})");
  Write("special_tokens_map.json", R"({"additional_special_tokens": ["a"]})");
  EXPECT_EQ(MustImport().vocabulary.piece_types[0], PieceType::kControl);
  Write("special_tokens_map.json", R"({"additional_special_tokens": [3]})");
  EXPECT_THAT(Refusal(), HasSubstr("additional_special_tokens[0] must be a token"));
}

TEST_F(TokenizerImportTest, WhichTemplateCounts) {
  Write("tokenizer.json", kTokenizerJson);
  EXPECT_EQ(MustImport().chat_template_source, "");
  Write("chat_template.json", R"({"chat_template": "processor's"})");
  EXPECT_EQ(MustImport().chat_template_source, "processor's");
  Write("tokenizer_config.json", R"({"chat_template": "tokenizer's"})");
  EXPECT_EQ(MustImport().chat_template_source, "tokenizer's");
  Write("chat_template.jinja", "its own file's");
  EXPECT_EQ(MustImport().chat_template_source, "its own file's");
  EXPECT_EQ(ImportTokenizerOf(folder_, 8, {{"given", "x.jinja"}}).value().chat_template_source,
            "given");
  EXPECT_EQ(ImportTokenizerOf(folder_, 8, {{"", "none"}}).value().chat_template_source, "");
}

TEST_F(TokenizerImportTest, ANoteSaysThatNoTemplateIsTheDefault) {
  Write("tokenizer.json", kTokenizerJson);
  const std::string where = (folder_ / "tokenizer_config.json").string();
  Write("tokenizer_config.json",
        R"({"chat_template": [{"name": "a", "template": "x"}, {"name": "b", "template": "y"}]})");
  const ImportedTokenizer imported = MustImport();
  EXPECT_EQ(imported.chat_template_source, "");
  EXPECT_THAT(imported.notes,
              ElementsAre(where + ": chat_template has \"a\", \"b\", and none that is called "
                                  "\"default\": the model gets no chat template"));
  // A template that is given, or that another file has, takes its place.
  EXPECT_THAT(ImportTokenizerOf(folder_, 8, {{"{{ messages[-1].content }}", "x.jinja"}})->notes,
              testing::IsEmpty());
  Write("chat_template.json", R"({"chat_template": "{{ messages[-1].content }}"})");
  EXPECT_THAT(MustImport().notes, testing::IsEmpty());
  std::filesystem::remove(folder_ / "chat_template.json");
  Write("tokenizer_config.json", R"({"chat_template": []})");
  EXPECT_THAT(MustImport().notes, ElementsAre(HasSubstr("chat_template has no templates")));
}

TEST_F(TokenizerImportTest, ANoteNamesTheTemplatesOfTheirFolder) {
  Write("tokenizer.json", kTokenizerJson);
  const std::filesystem::path more = folder_ / "additional_chat_templates";
  std::filesystem::create_directory(more);
  EXPECT_THAT(MustImport().notes, testing::IsEmpty());
  Write("additional_chat_templates/tool_use.jinja", "x");
  Write("additional_chat_templates/rag.jinja", "x");
  Write("additional_chat_templates/readme.md", "x");
  EXPECT_EQ(MustImport().chat_template_source, "");
  EXPECT_THAT(MustImport().notes,
              ElementsAre(more.string() + " has \"rag\", \"tool_use\", and the checkpoint has no "
                                          "default template: the model gets no chat template"));
  Write("chat_template.jinja", "{{ messages[-1].content }}");
  EXPECT_THAT(MustImport().notes,
              ElementsAre("of the chat templates, the model gets the default one, and not "
                          "\"rag\", \"tool_use\" of " +
                          more.string()));
}

TEST_F(TokenizerImportTest, ATemplateThatCannotBeRenderedIsRefused) {
  Write("tokenizer.json", kTokenizerJson);
  Write("chat_template.jinja", "\n{% if %}");
  EXPECT_THAT(Refusal(), HasSubstr("The chat template, line 2: '%}' stands where an expression"));
  EXPECT_EQ(ImportTokenizerOf(folder_, 8).error().remedy().kind, RemedyKind::kChatTemplate);
  EXPECT_THAT(Refusal(), StartsWith((folder_ / "chat_template.jinja").string() + ": "));
  std::filesystem::remove(folder_ / "chat_template.jinja");
  Write("tokenizer_config.json", R"({"chat_template": "{% if %}"})");
  EXPECT_THAT(Refusal(), StartsWith((folder_ / "tokenizer_config.json").string() + ": The chat"));
  EXPECT_THAT(ImportTokenizerOf(folder_, 8, {{"{% if %}", "my.jinja"}}).error().message(),
              StartsWith("my.jinja: The chat"));
  EXPECT_TRUE(ImportTokenizerOf(folder_, 8, {{"", "none"}}));
}

TEST_F(TokenizerImportTest, ATemplateThatIsNotUtf8IsRefused) {
  Write("tokenizer.json", kTokenizerJson);
  Write("chat_template.jinja", "caf\xE9");
  EXPECT_THAT(Refusal(), HasSubstr("chat_template.jinja: is not UTF-8 at byte 3"));
  EXPECT_FALSE(ReadChatTemplate((folder_ / "chat_template.jinja").string()));
}

TEST_F(TokenizerImportTest, WhatEndsATurnInTheTemplateEndsAnAnswer) {
  Write("tokenizer.json", kTokenizerJson);
  EXPECT_THAT(
      ImportTokenizerOf(folder_, 8, {{"{{ messages[-1].content }} <|im_start|>", "x.jinja"}})
          .value()
          .stop_token_ids,
      ElementsAre(4, 5, 6));
}

TEST_F(TokenizerImportTest, AddedTokensJson) {
  Write("tokenizer.json", kTokenizerJson);
  Write("added_tokens.json", R"({"<|more|>": 7, "<|im_start|>": 5})");
  const ImportedTokenizer imported = MustImport();
  EXPECT_EQ(imported.vocabulary.piece_types[7], PieceType::kControl);
  EXPECT_EQ(imported.vocabulary.piece_types[5], PieceType::kUserDefined);
}

TEST_F(TokenizerImportTest, TiktokenRanksOnlyWithoutTokenizerJson) {
  Write("tokenizer.model", "YQ== 0\nYg== 1\nYWI= 2\n");
  EXPECT_THAT(Refusal(), HasSubstr("tiktoken"));
  Write("tokenizer_config.json", R"({"added_tokens_decoder":
      {"3": {"content": "<|begin_of_text|>", "special": true}}})");
  EXPECT_EQ(MustImport().vocabulary.rules.bos_token_id, 3);
  std::filesystem::remove(folder_ / "tokenizer_config.json");
  Write("tokenizer.json", kTokenizerJson);
  EXPECT_EQ(MustImport().vocabulary.rules.bos_token_id, -1);
}

TEST_F(TokenizerImportTest, NullsAndMinusOneMeanNone) {
  Write("tokenizer.json", kTokenizerJson);
  Write("tokenizer_config.json",
        R"({"add_bos_token": null, "bos_token": null, "eos_token": null, "chat_template": null})");
  Write("config.json", R"({"eos_token_id": null, "bos_token_id": -1})");
  EXPECT_THAT(MustImport().stop_token_ids, ElementsAre(4, 6));
}

TEST_F(TokenizerImportTest, WrongSettingsAreNamed) {
  Write("tokenizer.json", kTokenizerJson);
  for (const auto& [name, text, named] :
       {std::tuple("tokenizer_config.json", "{", "is not JSON"),
        std::tuple("tokenizer_config.json", "[]", "is not a JSON object"),
        std::tuple("tokenizer_config.json", R"({"add_bos_token": 1})",
                   "add_bos_token is 1, but must be"),
        std::tuple("tokenizer_config.json", R"({"add_bos_token": true})", "there is no bos_token"),
        std::tuple("tokenizer_config.json", R"({"bos_token": "<x>"})", "bos_token is \"<x>\""),
        std::tuple("tokenizer_config.json", R"({"bos_token": {"content": 1}})",
                   "bos_token.content is 1, but must be a string"),
        std::tuple("tokenizer_config.json", R"({"eos_token": "a"})", "eos_token is \"a\""),
        std::tuple("tokenizer_config.json", R"({"chat_template": 1})", "chat_template must be"),
        std::tuple("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {}}})",
                   "added_tokens_decoder has the key \"x\""),
        std::tuple("tokenizer_config.json", R"({"added_tokens_decoder": {"7": {}}})",
                   "added_tokens_decoder[\"7\"].content is missing"),
        std::tuple("tokenizer_config.json", R"({"added_tokens_decoder": {"2": {"content": "x"}}})",
                   "has the id 2"),
        std::tuple("generation_config.json", R"({"eos_token_id": "x"})", "eos_token_id must be"),
        std::tuple("generation_config.json", R"({"eos_token_id": [1, null]})", "eos_token_id"),
        std::tuple("generation_config.json", R"({"eos_token_id": 8})", "eos_token_id is 8"),
        std::tuple("config.json", R"({"bos_token_id": []})", "bos_token_id must be"),
        std::tuple("added_tokens.json", R"({"<x>": "y"})", "\"<x>\" must be")}) {
    Write(name, text);
    EXPECT_THAT(Refusal(), HasSubstr(named)) << text;
    std::filesystem::remove(folder_ / name);
  }
}

TEST_F(TokenizerImportTest, TooManyTokens) {
  Write("tokenizer.json", kTokenizerJson);
  EXPECT_TRUE(Import(7));
  EXPECT_THAT(Refusal(6), HasSubstr("7 tokens"));
}

TEST_F(TokenizerImportTest, BosOutsideTheVocabulary) {
  Write("tokenizer.json", kTokenizerJson);
  Write("config.json", R"({"bos_token_id": 8})");
  EXPECT_THAT(Refusal(), HasSubstr("config.json or the tokenizer: bos_token_id is 8"));
}

TEST_F(TokenizerImportTest, PatternsAreTriedOut) {
  std::string text = kTokenizerJson;
  const std::string byte_level =
      R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})";
  text.replace(text.find(byte_level), byte_level.size(),
               R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated",
                  "pattern": {"Regex": "("}}, )" +
                   byte_level + "]}");
  Write("tokenizer.json", text);
  EXPECT_THAT(Refusal(), HasSubstr("split pattern \"(\""));
}

// Otherwise the model would lack what the file says, such as the chat template.
TEST_F(TokenizerImportTest, FilesThatCannotBeReadAreNotAbsent) {
  Write("tokenizer.json", kTokenizerJson);
  ASSERT_TRUE(Import());
  for (const char* const name :
       {"tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
        "chat_template.jinja", "chat_template.json", "generation_config.json", "config.json"}) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_symlink("../blobs/gone", path);
    EXPECT_THAT(Refusal(), StartsWith(path.string() + ": is a link to \"../blobs/gone\""));
    std::filesystem::remove(path);
    std::filesystem::create_symlink(name, path);
    EXPECT_THAT(Refusal(), StartsWith(path.string() + ": cannot open: Too many levels"));
    std::filesystem::remove(path);
    std::filesystem::create_symlink(std::string(300, 'x'), path);
    EXPECT_THAT(Refusal(), StartsWith(path.string() + ": cannot open: File name too long"));
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    EXPECT_THAT(Refusal(), StartsWith(path.string() + ": is not a regular file"));
    std::filesystem::remove(path);
    Write(name, "");
    EXPECT_THAT(Refusal(), StartsWith(path.string() + ": is empty"));
    std::filesystem::remove(path);
  }
  std::filesystem::remove(folder_ / "tokenizer.json");
  std::filesystem::create_symlink("gone", folder_ / "tokenizer.json");
  EXPECT_THAT(Refusal(), HasSubstr("tokenizer.json: is a link to \"gone\""));
}

TEST_F(TokenizerImportTest, PointersAndEmptyFiles) {
  Write("tokenizer.model", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_THAT(Refusal(), HasSubstr("Git LFS"));
  Write("chat_template.jinja", "");
  EXPECT_FALSE(ReadChatTemplate((folder_ / "chat_template.jinja").string()));
  std::filesystem::remove(folder_ / "chat_template.jinja");
  Write("tokenizer.model", "");
  EXPECT_THAT(Refusal(), HasSubstr("is empty"));
  Write("tokenizer.model", "\x0A\x05 damaged");
  EXPECT_THAT(Refusal(), HasSubstr("not a SentencePiece model"));
}

}  // namespace
}  // namespace cria
