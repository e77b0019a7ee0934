#include "converter/chat_template_recognizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "golden/test_data.h"

namespace cria {
namespace {

TEST(ChatTemplateRecognizerTest, ByTheMarks) {
  EXPECT_EQ(RecognizeChatTemplate(""), ChatTemplateKind::kNone);
  EXPECT_EQ(RecognizeChatTemplate("{{ message }}"), ChatTemplateKind::kNone);
  EXPECT_EQ(RecognizeChatTemplate("<|im_start|>{{ role }}\n{{ content }}<|im_end|>\n"),
            ChatTemplateKind::kChatMl);
  EXPECT_EQ(RecognizeChatTemplate("<|im_start|>user<|im_sep|>{{ content }}<|im_end|>"),
            ChatTemplateKind::kNone);
  EXPECT_EQ(RecognizeChatTemplate("[INST] <<SYS>> [/INST]"), ChatTemplateKind::kLlama2);
  EXPECT_EQ(RecognizeChatTemplate("[INST] [/INST]"), ChatTemplateKind::kNone);
  EXPECT_EQ(RecognizeChatTemplate("<|start_header_id|>x<|end_header_id|>y<|eot_id|>"),
            ChatTemplateKind::kLlama3);
}

TEST(ChatTemplateRecognizerTest, TokensOfAKind) {
  EXPECT_TRUE(ChatTemplateTokens(ChatTemplateKind::kNone).empty());
  EXPECT_EQ(ChatTemplateTokens(ChatTemplateKind::kLlama2).size(), 2u);
  EXPECT_EQ(ChatTemplateTokens(ChatTemplateKind::kLlama3).size(), 4u);
  EXPECT_EQ(ChatTemplateTokens(ChatTemplateKind::kChatMl).size(), 2u);
}

TEST(ChatTemplateRecognizerTest, TemplatesOfModels) {
  CRIA_NEEDS_TEST_DATA("chat");
  const auto recognize = [](const char* name) {
    std::ifstream file(ExternalTestData() / "chat" / name);
    EXPECT_TRUE(file) << name;
    std::ostringstream source;
    source << file.rdbuf();
    return RecognizeChatTemplate(source.str());
  };
  EXPECT_EQ(recognize("Llama-2-chat.jinja"), ChatTemplateKind::kLlama2);
  EXPECT_EQ(recognize("Llama-3.1-8B-Instruct.jinja"), ChatTemplateKind::kLlama3);
  EXPECT_EQ(recognize("Llama-3.2-3B-Instruct.jinja"), ChatTemplateKind::kLlama3);
  EXPECT_EQ(recognize("Qwen2.5-7B-Instruct.jinja"), ChatTemplateKind::kChatMl);
  EXPECT_EQ(recognize("DeepSeek-R1-Distill-Llama-8B.jinja"), ChatTemplateKind::kNone);
  EXPECT_EQ(recognize("Mistral-Nemo-Instruct-2407.jinja"), ChatTemplateKind::kNone);
  EXPECT_EQ(recognize("gemma-2-2b-it.jinja"), ChatTemplateKind::kNone);
}

}  // namespace
}  // namespace cria
