// cria-make-checkpoint: writes a checkpoint of random weights, for measuring sizes and speeds.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <format>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "cli/messages.h"
#include "reference/hugging_face_directory.h"
#include "reference/reference_decoder.h"
#include "support/family_checkpoint.h"
#include "support/files.h"
#include "support/tiny_checkpoint.h"

namespace cria::support {
namespace {

// For programs that compare: a row of logits for each of `tokens` tokens, of which the i-th is
// (7 i^2 + 13 i + 5) mod the size of the vocabulary.
void WriteLogits(const reference::ReferenceModel& model, size_t tokens, const std::string& path) {
  std::vector<int> ids(tokens);
  for (size_t i = 0; i < tokens; ++i) {
    ids[i] = static_cast<int>((7 * i * i + 13 * i + 5) % model.config.vocab_size);
  }
  std::string text;
  for (const double logit : reference::Logits(model, ids, tokens)) {
    text += std::format("{}\n", logit);
  }
  WriteFile(path, text);
}

int Main(int argc, char** argv) {
  cli::CommandLine command("cria-make-checkpoint",
                           "Writes a Hugging Face checkpoint of random weights.");
  std::string directory;
  CheckpointSpec spec = SpecNamed("stories1m");
  auto& config = spec.config;
  size_t logits_tokens = 0;
  std::string config_path;
  double router_skew = 0.0;
  double embedding_scale = 1.0;
  command
      .AddText("-o,--output", directory,
               "The directory to write, or with --config a file NAME.gguf, whose matrices are Q4_0")
      .Required();
  // Added before the options that change the shape: options are stored in this order.
  command.Add(
      "--shape", "NAME",
      [&spec](std::string_view name) -> Status {
        const std::vector<std::string> names = SpecNames();
        if (!std::ranges::contains(names, name)) return cli::WrongValue(name, "a shape");
        spec = SpecNamed(std::string(name));
        return {};
      },
      "The shape to start from, whose numbers stand where others are not given [stories1m]");
  command.AddNumber("--hidden-size", config.hidden_size, "Channels of the residual stream");
  command.AddNumber("--intermediate-size", config.intermediate_size,
                    "Channels of the feed-forward");
  command.AddNumber("--num-hidden-layers", config.num_hidden_layers, "Layers");
  command.AddNumber("--num-attention-heads", config.num_attention_heads, "Query heads");
  command.AddNumber("--num-key-value-heads", config.num_key_value_heads, "Key-value heads");
  command.AddNumber("--head-dim", config.head_dim, "Channels of a head");
  command.AddNumber("--vocab-size", config.vocab_size, "Tokens, at least 263");
  command.AddNumber("--special-tokens", spec.format.num_special_tokens,
                    "How many of them are special, at least 7");
  command.AddNumber("--max-position-embeddings", config.max_position_embeddings,
                    "The longest context");
  command.AddNumber("--rope-theta", config.rope_theta, "The base of the rotary frequencies");
  command.AddChoice("--tie-word-embeddings", config.tie_word_embeddings,
                    {{"true", true}, {"false", false}}, "Whether the head is the embedding");
  command.AddNumber("--seed", spec.seed, "Another seed gives other weights");
  command.AddNumber("--shards", spec.format.shards, "Number of safetensors files");
  command.AddChoice(
      "--dtype", spec.format.storage,
      {{"f32", StorageType::kF32}, {"bf16", StorageType::kBf16}, {"f16", StorageType::kF16}},
      "How numbers are stored: f32, bf16, f16");
  command.AddChoice("--chat-template", spec.format.chat_template,
                    {{"none", ChatTemplateText::kNone},
                     {"llama3", ChatTemplateText::kLlama3},
                     {"chatml", ChatTemplateText::kChatMl}},
                    "none, llama3 or chatml");
  command.AddNumber(
      "--logits", logits_tokens,
      "Also write logits.txt, what the reference decoder computes for so many tokens");
  command.AddText("--config", config_path, "The config.json of another family, instead of a shape");
  command.AddNumber("--router-skew", router_skew,
                    "How unevenly tokens choose experts; 0: evenly [0]");
  command.AddNumber(
      "--embedding-scale", embedding_scale,
      "With --config: multiplies the embedding; with a larger one, tokens differ more, "
      "and choose more different experts [1]");
  command.SetAction([&]() -> Status {
    if (!config_path.empty()) {
      FamilyCheckpoint family = FamilyOf(ReadFile(config_path));
      family.storage = spec.format.storage;
      family.router_skew = router_skew;
      family.embedding_scale = static_cast<float>(embedding_scale);
      if (directory.ends_with(".gguf")) {
        if (logits_tokens > 0) throw std::runtime_error("--logits needs a directory as --output");
        WriteFamilyGguf(family, directory, true);
        return {};
      }
      WriteFamilyDirectory(family, directory);
      if (logits_tokens > 0) {
        WriteLogits(reference::ReadHuggingFaceDirectory(directory), logits_tokens,
                    directory + "/logits.txt");
      }
      return {};
    }
    SetTokenIds(spec);
    WriteRandomCheckpoint(spec, directory);
    if (logits_tokens > 0) WriteLogits(MakeModel(spec), logits_tokens, directory + "/logits.txt");
    return {};
  });
  try {
    const Status done = command.Run(std::vector<std::string>(argv + 1, argv + argc));
    return done ? 0 : cli::ReportError("cria-make-checkpoint", done.error());
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "cria-make-checkpoint: %s\n", exception.what());
    return 1;
  }
}

}  // namespace
}  // namespace cria::support

int main(int argc, char** argv) { return cria::support::Main(argc, argv); }
