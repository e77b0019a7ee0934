#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "llm/engine.h"
#include "llm/generator.h"
#include "llm/measure/perplexity.h"
#include "llm/turn.h"
#include "support/files.h"
#include "support/unwrap.h"

namespace cria {

// The `count` likeliest ids behind the prompt.
inline std::vector<int32_t> GreedyIds(Engine& engine, const std::vector<int32_t>& prompt,
                                      size_t count) {
  Sampler sampler = *Sampler::Create({.temperature = 0.0f}, engine.decoder().vocab_size());
  Session session(engine.scheduler());
  EXPECT_TRUE(Turn(session).Prefill(prompt));
  std::vector<int32_t> ids;
  EXPECT_TRUE(Generate(session, {.max_tokens = count}, sampler, [&](const GeneratedToken& token) {
    ids.push_back(token.id);
    return true;
  }));
  return ids;
}

// The mean negative log-likelihood of `ids` in windows of `context` tokens, in nats.
inline double MeanNats(Engine& engine, std::span<const int32_t> ids, size_t context) {
  const auto measured =
      MeasurePerplexity(engine.decoder(), ids, engine.file().vocabulary().bos_token_id, context,
                        [](const Perplexity&) {});
  EXPECT_TRUE(measured);
  EXPECT_EQ(measured->predicted_tokens, ids.size());
  return measured->mean_negative_log_likelihood;
}

// The conversations beside the demo checkpoint, in the words of its chat template.
inline std::string DemoText(const std::filesystem::path& checkpoint) {
  std::string text;
  const std::string lines = support::ReadFile(checkpoint / ".." / "conversations.jsonl");
  for (size_t begin = 0; begin < lines.size(); begin = lines.find('\n', begin) + 1) {
    const auto messages = nlohmann::json::parse(
        std::string_view(lines).substr(begin, lines.find('\n', begin) - begin));
    for (const auto& message : messages) {
      text += "<|im_start|>" + message["role"].get<std::string>() + "\n" +
              message["content"].get<std::string>() + "<|im_end|>\n";
    }
  }
  return text;
}

inline std::vector<int32_t> DemoIds(const Tokenizer& tokenizer,
                                    const std::filesystem::path& checkpoint) {
  return Unwrap(tokenizer.Encode(DemoText(checkpoint), {.add_bos = false, .parse_special = true}));
}

}  // namespace cria
