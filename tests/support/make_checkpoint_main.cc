// cria-make-checkpoint: writes a checkpoint of random weights, for measuring sizes and speeds where
// the words do not matter.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <format>
#include <map>
#include <string>
#include <vector>

#include "reference/reference_decoder.h"
#include "support/files.h"
#include "support/tiny_checkpoint.h"

namespace cria::support {
namespace {

const std::map<std::string, StorageType> kStorageNames = {
    {"f32", StorageType::kF32}, {"bf16", StorageType::kBf16}, {"f16", StorageType::kF16}};
const std::map<std::string, ChatTemplateText> kChatTemplateNames = {
    {"none", ChatTemplateText::kNone},
    {"llama3", ChatTemplateText::kLlama3},
    {"chatml", ChatTemplateText::kChatMl}};

// Puts a flag's value over the shape's where the flag was given.
template <typename T>
class Override {
 public:
  Override(CLI::App& app, const char* flag, const char* help)
      : option_(app.add_option(flag, value_, help)) {}
  Override(const Override&) = delete;
  Override& operator=(const Override&) = delete;

  void Apply(T& field) const {
    if (option_->count() > 0) field = value_;
  }
  CLI::Option& option() { return *option_; }

 private:
  T value_{};
  CLI::Option* option_;
};

// For programs that compare: a row of logits for each of `tokens` tokens, of which the i-th is
// (7 i^2 + 13 i + 5) mod the size of the vocabulary.
void WriteLogits(const CheckpointSpec& spec, size_t tokens, const std::string& path) {
  std::vector<int> ids(tokens);
  for (size_t i = 0; i < tokens; ++i) {
    ids[i] = static_cast<int>((7 * i * i + 13 * i + 5) % spec.config.vocab_size);
  }
  std::string text;
  for (const double logit : reference::Logits(MakeModel(spec), ids, tokens)) {
    text += std::format("{}\n", logit);
  }
  WriteFile(path, text);
}

int Main(int argc, char** argv) {
  CLI::App app("Writes a Hugging Face checkpoint of random weights.", "cria-make-checkpoint");
  std::string directory;
  std::string shape = "stories1m";
  app.add_option("-o,--output", directory, "The directory to write")->required();
  app.add_option("--shape", shape, "The shape to start from")
      ->check(CLI::IsMember(SpecNames()))
      ->capture_default_str();
  Override<size_t> hidden_size(app, "--hidden-size", "Channels of the residual stream");
  Override<size_t> intermediate_size(app, "--intermediate-size", "Channels of the feed-forward");
  Override<size_t> layers(app, "--num-hidden-layers", "Layers");
  Override<size_t> heads(app, "--num-attention-heads", "Query heads");
  Override<size_t> key_value_heads(app, "--num-key-value-heads", "Key-value heads");
  Override<size_t> head_dim(app, "--head-dim", "Channels of a head");
  Override<size_t> vocab_size(app, "--vocab-size", "Tokens, at least 263");
  Override<size_t> positions(app, "--max-position-embeddings", "The longest context");
  Override<double> rope_theta(app, "--rope-theta", "The base of the rotary frequencies");
  Override<bool> tied(app, "--tie-word-embeddings", "Whether the head is the embedding");
  Override<uint64_t> seed(app, "--seed", "Another seed gives other weights");
  Override<size_t> shards(app, "--shards", "Number of safetensors files");
  Override<StorageType> storage(app, "--dtype", "How numbers are stored: f32, bf16, f16");
  storage.option().transform(CLI::CheckedTransformer(kStorageNames));
  Override<ChatTemplateText> chat(app, "--chat-template", "none, llama3 or chatml");
  chat.option().transform(CLI::CheckedTransformer(kChatTemplateNames));
  size_t logits_tokens = 0;
  app.add_option("--logits", logits_tokens,
                 "Also write logits.txt, what the reference decoder computes for so many tokens");
  CLI11_PARSE(app, argc, argv);

  try {
    CheckpointSpec spec = SpecNamed(shape);
    hidden_size.Apply(spec.config.hidden_size);
    intermediate_size.Apply(spec.config.intermediate_size);
    layers.Apply(spec.config.num_hidden_layers);
    heads.Apply(spec.config.num_attention_heads);
    key_value_heads.Apply(spec.config.num_key_value_heads);
    head_dim.Apply(spec.config.head_dim);
    vocab_size.Apply(spec.config.vocab_size);
    positions.Apply(spec.config.max_position_embeddings);
    rope_theta.Apply(spec.config.rope_theta);
    tied.Apply(spec.config.tie_word_embeddings);
    seed.Apply(spec.seed);
    shards.Apply(spec.format.shards);
    storage.Apply(spec.format.storage);
    chat.Apply(spec.format.chat_template);
    SetTokenIds(spec);
    WriteRandomCheckpoint(spec, directory);
    if (logits_tokens > 0) WriteLogits(spec, logits_tokens, directory + "/logits.txt");
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "cria-make-checkpoint: %s\n", exception.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace cria::support

int main(int argc, char** argv) { return cria::support::Main(argc, argv); }
