#include "converter/gguf/gguf_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "converter/gguf/convert_to_bytes.h"
#include "model/model_file.h"
#include "support/block_gguf.h"
#include "support/emulation.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"
#include "weights/ggml_reference.h"

namespace cria {
namespace {

using support::CheckpointSpec;
using support::GgufWriter;
using support::StorageType;
using ::testing::HasSubstr;

class GgufCheckpointTest : public ::testing::Test {
 protected:
  // A Hugging Face folder and a GGUF file of the model, both named "model", give the same file.
  void ExpectSameModelFile(CheckpointSpec spec, StorageType type,
                           const ConvertOptions& options = {}, size_t parts = 1) {
    spec.format.storage = type;
    const reference::ReferenceModel model = support::MakeModel(spec);
    const auto folder = directory_.path() / "hf" / "model";
    support::WriteHuggingFaceDirectory(model, folder, spec.format);
    const auto gguf = support::WriteGguf(model, type, directory_.path() / "model.gguf", parts,
                                         spec.format.chat_template);
    const std::string expected = ConvertToBytes(folder, output_, options);
    EXPECT_EQ(ConvertToBytes(gguf, output_, options) == expected, true);
  }

  // Writes a valid file of a model that `change` has modified.
  std::filesystem::path Write(const std::function<void(GgufWriter&)>& change = {},
                              const CheckpointSpec& spec = support::SpecGqa()) {
    const reference::ReferenceModel model = support::MakeModel(spec);
    GgufWriter writer;
    support::AddModelMetadata(model, support::ChatTemplateText::kNone, writer);
    for (const auto& [name, tensor] : model.tensors) {
      support::AddModelTensor(model, name, StorageType::kF32, writer);
    }
    if (change) change(writer);
    const auto path = directory_.path() / "changed.gguf";
    support::WriteFile(path, writer.File());
    return path;
  }

  void ExpectRefused(const std::filesystem::path& path, std::string_view reason) {
    const auto report = Convert(path, output_, {});
    ASSERT_FALSE(report) << reason;
    EXPECT_THAT(report.error().message(), HasSubstr(reason));
    EXPECT_FALSE(report.error().message().contains('\n'));
  }

  support::TemporaryDirectory directory_;
  std::filesystem::path output_ = directory_.path() / "out.cria";
};

TEST_F(GgufCheckpointTest, IsTheModelThatHuggingFacesFilesAre) {
  for (const StorageType type : {StorageType::kF32, StorageType::kF16, StorageType::kBf16}) {
    ExpectSameModelFile(support::SpecGqa(), type);
  }
  ExpectSameModelFile(support::SpecMha(), StorageType::kF32, {.weights = Scheme::kF32});
  ExpectSameModelFile(support::SpecMqa(), StorageType::kBf16, {.weights = Scheme::kQc8w});
  ExpectSameModelFile(support::SpecTied(), StorageType::kF16);
  ExpectSameModelFile(support::SpecOddHeadDim(), StorageType::kF32);
  ExpectSameModelFile(support::SpecLinearRope(), StorageType::kF32);
  ExpectSameModelFile(support::SpecLlama3Rope(), StorageType::kF32);
  CheckpointSpec chat = support::SpecGqa();
  chat.format.chat_template = support::ChatTemplateText::kChatMl;
  ExpectSameModelFile(chat, StorageType::kF32);
}

// Hugging Face's files give the factor of attention, and GGUF files have no key for it.
TEST_F(GgufCheckpointTest, YarnIsTheModelThatHuggingFacesFilesAre) {
  for (const bool is_deepseek : {false, true}) {
    const reference::ReferenceModel model = support::MakeModel(support::SpecYarnRope());
    const auto folder = directory_.path() / "hf" / "model";
    support::WriteHuggingFaceDirectory(model, folder, support::SpecYarnRope().format);
    auto config = nlohmann::json::parse(support::ReadFile(folder / "config.json"));
    ASSERT_EQ(config["rope_scaling"].erase("attention_factor"), 1u);
    if (is_deepseek) config["rope_scaling"].update({{"mscale", 1.0}, {"mscale_all_dim", 0.7}});
    support::WriteFile(folder / "config.json", config.dump());
    GgufWriter writer;
    support::AddModelMetadata(model, support::ChatTemplateText::kNone, writer);
    if (is_deepseek) writer.Add("llama.rope.scaling.yarn_log_multiplier", 0.7f);
    for (const auto& [name, tensor] : model.tensors) {
      support::AddModelTensor(model, name, StorageType::kF32, writer);
    }
    support::WriteFile(directory_.path() / "model.gguf", writer.File());
    const std::string expected = ConvertToBytes(folder, output_, {});
    EXPECT_EQ(ConvertToBytes(directory_.path() / "model.gguf", output_, {}) == expected, true);
  }
}

TEST_F(GgufCheckpointTest, SoAreLlamasRelatives) {
  for (const StorageType type : {StorageType::kF32, StorageType::kBf16}) {
    ExpectSameModelFile(support::SpecQwen2(), type);
    ExpectSameModelFile(support::SpecQwen3(), type);
  }
  CheckpointSpec untied = support::SpecQwen2();
  untied.config.tie_word_embeddings = false;
  ExpectSameModelFile(untied, StorageType::kF32, {.weights = Scheme::kF32}, 2);
  // Tensors decide which biases exist, in addition to those of the architecture.
  ExpectSameModelFile(support::SpecQwen3Biases(), StorageType::kF32);
  ExpectSameModelFile(support::SpecBiases(), StorageType::kF32, {.weights = Scheme::kF32});
  CheckpointSpec attention = support::SpecBiases();
  attention.config.mlp_bias = false;
  ExpectSameModelFile(attention, StorageType::kF16);
}

TEST_F(GgufCheckpointTest, MistralIsALlamaWithAWindow) {
  for (const CheckpointSpec& spec : {support::SpecMistral(), support::SpecMinistral()}) {
    const reference::ReferenceModel model = support::MakeModel(spec);
    const auto folder = directory_.path() / "hf" / "model";
    support::WriteHuggingFaceDirectory(model, folder, spec.format);
    const auto gguf =
        support::WriteGguf(model, StorageType::kF32, directory_.path() / "model.gguf");
    ASSERT_TRUE(Convert(folder, directory_.path() / "expected.cria", {}));
    ASSERT_TRUE(Convert(gguf, output_, {}));
    const auto expected = ModelFile::Open((directory_.path() / "expected.cria").string());
    const auto converted = ModelFile::Open(output_.string());
    ASSERT_TRUE(expected && converted);
    const ModelConfig& config = converted->config();
    EXPECT_EQ(config.architecture, "LlamaForCausalLM");
    EXPECT_EQ(config.layer_kinds[0].sliding_window, 12u);
    EXPECT_EQ(config.layer_kinds, expected->config().layer_kinds);
    EXPECT_EQ(config.kind_of_layer, expected->config().kind_of_layer);
    EXPECT_EQ(config.head_dim, expected->config().head_dim);
    ASSERT_EQ(converted->tensors().size(), expected->tensors().size());
    for (size_t i = 0; i < expected->tensors().size(); ++i) {
      EXPECT_EQ(converted->tensors()[i].checksum, expected->tensors()[i].checksum);
    }
  }
}

TEST_F(GgufCheckpointTest, LayersWithAWindowMayHaveTheirOwnBase) {
  ExpectSameModelFile(support::SpecQwen3Window(), StorageType::kF32);
  reference::ReferenceModel model = support::MakeModel(support::SpecTwoRopes());
  model.config.layers[2].rope_scaling = {};
  const auto path = support::WriteGguf(model, StorageType::kF32, directory_.path() / "model.gguf");
  const auto checkpoint = OpenGgufCheckpoint(path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  const ModelConfig& config = checkpoint->config;
  ASSERT_EQ(config.layer_kinds.size(), 2u);
  EXPECT_EQ(config.layer_kinds[0], (LayerKind{.sliding_window = 12, .rope_theta = 1e4f}));
  EXPECT_EQ(config.layer_kinds[1], (LayerKind{.rope_theta = 1e6f}));
  EXPECT_EQ(config.kind_of_layer, (std::vector<uint8_t>{0, 0, 1}));
}

TEST_F(GgufCheckpointTest, PatternsOfWindowsAreNumbersOrLists) {
  constexpr std::string_view kPattern = "llama.attention.sliding_window_pattern";
  CheckpointSpec spec = support::SpecGqa();
  spec.config.num_hidden_layers = 4;
  const auto write = [&](uint32_t window, auto pattern) {
    return Write(
        [&](GgufWriter& writer) {
          if (window != 0) writer.Add("llama.attention.sliding_window", window);
          writer.Add(kPattern, pattern);
        },
        spec);
  };
  // For each layer, whether it has a window.
  const auto layers = [&](uint32_t window, auto pattern) {
    std::string text;
    const auto checkpoint = OpenGgufCheckpoint(write(window, pattern));
    if (!checkpoint) return checkpoint.error().message();
    for (size_t i = 0; i < 4; ++i) {
      text += checkpoint->config.layer_kind(i).sliding_window == 0 ? 'f' : 'w';
    }
    return text;
  };
  EXPECT_EQ(layers(12, 0u), "wwww");
  EXPECT_EQ(layers(12, 1u), "ffff");
  EXPECT_EQ(layers(12, 2u), "wfwf");
  EXPECT_EQ(layers(12, 3u), "wwfw");
  EXPECT_EQ(layers(12, 5u), "wwww");
  EXPECT_EQ(layers(12, std::vector<bool>{false, true, true, false}), "fwwf");
  EXPECT_EQ(layers(12, std::vector<int32_t>{1, 0, 0, 1}), "wffw");
  // The context has 128 positions.
  EXPECT_EQ(layers(128, 2u), "ffff");
  EXPECT_EQ(layers(0, std::vector<bool>(4, false)), "ffff");
  ExpectRefused(write(0, 2u),
                "llama.attention.sliding_window_pattern gives layers a window, but "
                "llama.attention.sliding_window gives no window");
  ExpectRefused(write(12, std::vector<bool>(3, true)),
                "llama.attention.sliding_window_pattern has 3 entries, but block_count is 4");
  ExpectRefused(write(12, std::vector<int32_t>{1, 0, 512, 0}),
                "llama.attention.sliding_window_pattern has 512, but must have 0 or 1");
  ExpectRefused(write(12, "2"), "llama.attention.sliding_window_pattern is not one whole number");
}

// Both kinds of layers are scaled by the factors, which are made for one base.
TEST_F(GgufCheckpointTest, RopeFactorsMustFitEveryBase) {
  const CheckpointSpec spec = support::SpecLlama3Rope();
  const auto write = [&](float sliding_base) {
    return Write(
        [&](GgufWriter& writer) {
          writer.Add("llama.attention.sliding_window", 12u);
          writer.Add("llama.attention.sliding_window_pattern", 2u);
          writer.Add("llama.rope.freq_base_swa", sliding_base);
          const std::vector<float> factors = support::Llama3Factors(spec.config);
          writer.AddTensor("rope_freqs.weight", {factors.size()}, StorageType::kF32, factors);
        },
        spec);
  };
  const auto checkpoint = OpenGgufCheckpoint(write(10000.0f));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  ASSERT_EQ(checkpoint->config.layer_kinds.size(), 2u);
  for (const LayerKind& kind : checkpoint->config.layer_kinds) {
    EXPECT_EQ(kind.rope_scaling.type, RopeScaling::Type::kLlama3);
  }
  ExpectRefused(write(500.0f), "another way than Llama 3 does");
}

TEST_F(GgufCheckpointTest, JoinsParts) {
  ExpectSameModelFile(support::SpecGqa(), StorageType::kF32, {}, 3);
  // Any of the parts may be given.
  const auto last = directory_.path() / "model-00003-of-00003.gguf";
  EXPECT_TRUE(Convert(last, output_, {}));
  std::filesystem::rename(directory_.path() / "model-00002-of-00003.gguf",
                          directory_.path() / "x.gguf");
  ExpectRefused(last, "model-00002-of-00003.gguf");
  ExpectRefused(directory_.path() / "x.gguf",
                "-00002-of-00003.gguf, which is needed to find the other parts");
  std::filesystem::copy_file(last, directory_.path() / "model-00002-of-00003.gguf");
  ExpectRefused(last, "split.no is 2 instead of 1");
}

TEST_F(GgufCheckpointTest, RopeFactorsAreLlama3sScaling) {
  const CheckpointSpec spec = support::SpecLlama3Rope();
  const auto path = support::WriteGguf(support::MakeModel(spec), StorageType::kF32,
                                       directory_.path() / "model.gguf");
  const auto checkpoint = OpenGgufCheckpoint(path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  const RopeScaling& scaling = checkpoint->config.layer_kinds[0].rope_scaling;
  EXPECT_EQ(scaling.type, RopeScaling::Type::kLlama3);
  EXPECT_EQ(scaling.factor, static_cast<float>(spec.config.rope_scaling.factor));
  ExpectRefused(Write([](GgufWriter& writer) {
                  writer.AddTensor("rope_freqs.weight", {8}, StorageType::kF32,
                                   {1, 3, 1, 3, 1, 3, 1, 3});
                }),
                "another way than Llama 3 does");
  ExpectRefused(Write([](GgufWriter& writer) {
                  writer.AddTensor("rope_freqs.weight", {2}, StorageType::kF32, {1, 2});
                }),
                "rope_freqs.weight\" has shape [2], but heads have 16");
}

// Compares random blocks of every quantized type, in each role, with their naive values in f32.
TEST_F(GgufCheckpointTest, QuantizedTensorsAreTheirReferenceBitForBit) {
  const CheckpointSpec spec = support::SpecOfBlocks();
  for (const support::GgmlBlock& block : support::GgmlBlocks()) {
    SCOPED_TRACE(block.name);
    reference::ReferenceModel model = support::MakeModel(spec);
    support::WriteBlockGguf(
        directory_.path() / "model.gguf", [&](const std::string&) { return block.name; }, model);
    // Interleaved rows of GGUF files are half-split in Hugging Face's: row 2i + s of a head becomes
    // row s * head_dim / 2 + i.
    for (auto& [name, tensor] : model.tensors) {
      if (!name.contains(".q_proj.") && !name.contains(".k_proj.")) continue;
      const std::vector<float> stored = tensor.values;
      const size_t inputs = tensor.shape[1];
      for (size_t row = 0; row < tensor.shape[0]; ++row) {
        const size_t in_head = row % 64;
        const size_t to = row - in_head + in_head % 2 * 32 + in_head / 2;
        std::copy_n(stored.begin() + static_cast<long>(row * inputs), inputs,
                    tensor.values.begin() + static_cast<long>(to * inputs));
      }
    }
    const auto folder = directory_.path() / "hf" / "model";
    support::WriteHuggingFaceDirectory(model, folder, spec.format);
    for (const Scheme scheme : {Scheme::kF32, Scheme::kQb4w}) {
      // Quantizing what was read takes an emulator two minutes.
      if (support::IsEmulated() && scheme == Scheme::kQb4w) continue;
      const std::string expected = ConvertToBytes(folder, output_, {.weights = scheme});
      EXPECT_EQ(ConvertToBytes(directory_.path() / "model.gguf", output_, {.weights = scheme}) ==
                    expected,
                true);
    }
  }
}

TEST_F(GgufCheckpointTest, RefusesWhatChangesTheMathematics) {
  const auto with = [&](std::string_view key, auto value) {
    return Write([&](GgufWriter& writer) { writer.Add(key, value); });
  };
  EXPECT_TRUE(Convert(Write(), output_, {}));
  EXPECT_TRUE(Convert(with("llama.expert_count", 0u), output_, {}));
  EXPECT_TRUE(Convert(with("llama.logit_scale", 1.0f), output_, {}));
  ExpectRefused(with("llama.expert_count", 8u), "llama.expert_used_count is missing");
  ExpectRefused(with("llama.logit_scale", 0.5f), "llama.logit_scale");
  ExpectRefused(with("llama.attention.causal", false), "llama.attention.causal is false");
  ExpectRefused(with("llama.rope.scaling.type", "longrope"),
                "llama.rope.scaling.type is \"longrope\"");
}

TEST_F(GgufCheckpointTest, PoolingIsThatOfTheFile) {
  const auto pooling = [&](uint32_t type) {
    const auto path = Write([&](GgufWriter& writer) { writer.Add("llama.pooling_type", type); });
    EXPECT_TRUE(Convert(path, output_, {.overwrite = true}));
    return ModelFile::Open(output_.string())->pooling();
  };
  EXPECT_EQ(pooling(0), std::nullopt);
  EXPECT_EQ(pooling(1), Pooling::kMean);
  EXPECT_EQ(pooling(3), Pooling::kLast);
  for (const auto& [type, name] :
       {std::pair(2u, "2 (cls)"), std::pair(4u, "4 (rank)"), std::pair(7u, "7, which")}) {
    ExpectRefused(Write([&](GgufWriter& writer) { writer.Add("llama.pooling_type", type); }),
                  std::string("llama.pooling_type is ") + name);
  }
}

TEST_F(GgufCheckpointTest, ARerankersAnswersAreADifference) {
  const std::vector<float> rows =
      support::MakeModel(support::SpecGqa()).tensors.at("model.embed_tokens.weight").values;
  const auto file = [&](const std::vector<std::string>& labels, size_t num_rows,
                        const char* prompt) {
    return Write([&](GgufWriter& writer) {
      writer.Add("llama.pooling_type", 4);
      writer.Add("llama.classifier.output_labels", labels);
      if (*prompt != '\0') writer.Add("tokenizer.chat_template.rerank", prompt);
      writer.AddTensor("cls.output.weight", {num_rows, 64}, StorageType::kF32,
                       {rows.begin(), rows.begin() + static_cast<ptrdiff_t>(num_rows * 64)});
    });
  };
  const char* const prompt = "Q: {query} D: {document}?";
  Unwrap(Convert(file({"yes", "no"}, 2, prompt), output_, {}));
  const ModelFile model = Unwrap(ModelFile::Open(output_.string()));
  ASSERT_TRUE(model.reranking());
  EXPECT_EQ(model.reranking()->prompt, prompt);
  ASSERT_EQ(model.reranking()->weight.size(), 64u);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(model.reranking()->weight[i], rows[i] - rows[64 + i]);

  ExpectRefused(file({"no", "yes"}, 2, prompt), "llama.classifier.output_labels is not \"yes\"");
  ExpectRefused(file({"yes", "no"}, 1, prompt), "has not the rows of two answers");
  ExpectRefused(file({"yes", "no"}, 2, ""), "tokenizer.chat_template.rerank");
  ExpectRefused(file({"yes", "no"}, 2, "{query} and {query}: {document}"),
                "does not have {query} once");
  ExpectRefused(file({"yes", "no"}, 2, "{query}"), "does not have {document} once");
}

TEST_F(GgufCheckpointTest, RefusesArchitecturesByName) {
  const auto of = [&](std::string_view architecture) {
    GgufWriter writer;
    writer.Add("general.architecture", architecture);
    const auto path = directory_.path() / "other.gguf";
    support::WriteFile(path, writer.File());
    return path;
  };
  ExpectRefused(of("gemma3n"),
                "general.architecture is \"gemma3n\"; this version converts llama, qwen2, qwen3, "
                "gemma, gemma2, gemma3, gemma4, phi3, ");
  ExpectRefused(of("gemma-embedding"),
                "general.architecture is \"gemma-embedding\": the model's attention looks in both "
                "directions, which is not supported");
  for (const std::string mixture : {"deepseek2", "glm4moe", "llama4"}) {
    ExpectRefused(of(mixture), "general.architecture is \"" + mixture + "\"");
  }
}

TEST_F(GgufCheckpointTest, RefusesTensorsThatDoNotFit) {
  ExpectRefused(Write([](GgufWriter& writer) {
                  writer.AddTensor("blk.0.attn_q.bias", {64}, StorageType::kF32,
                                   std::vector<float>(64));
                }),
                "k_proj.bias\" is missing, but its metadata or another tensor calls for it");
  ExpectRefused(Write([](GgufWriter& writer) {
                  writer.AddTensor("blk.1.attn_q.bias", {64}, StorageType::kF32,
                                   std::vector<float>(64));
                }),
                "\"blk.1.attn_q.bias\" is not part of");
  ExpectRefused(Write([](GgufWriter& writer) {
                  writer.AddTensor("blk.0.attn_q_norm.weight", {16}, StorageType::kF32,
                                   std::vector<float>(16));
                }),
                "\"blk.0.attn_q_norm.weight\" is not part of");
  ExpectRefused(Write([](GgufWriter& writer) {
                  writer.AddTensor("blk.9.attn_q.weight", {64, 64}, StorageType::kF32,
                                   std::vector<float>(4096));
                }),
                "is not part of");
  GgufWriter writer;
  const reference::ReferenceModel model = support::MakeModel(support::SpecGqa());
  support::AddModelMetadata(model, support::ChatTemplateText::kNone, writer);
  support::WriteFile(directory_.path() / "empty.gguf", writer.File());
  ExpectRefused(directory_.path() / "empty.gguf", "\"token_embd.weight\" is missing");
  EXPECT_EQ(Convert(directory_.path() / "empty.gguf", output_, {}).error().remedy().kind,
            RemedyKind::kConvertVocabulary);
}

}  // namespace
}  // namespace cria
