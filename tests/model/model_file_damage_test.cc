// Model files that are damaged, or made to deceive: opening one is an error that names what is
// wrong, and never a crash.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/temporary_file.h"
#include "model/model_file.h"
#include "model/test_model_file.h"

namespace cria {
namespace {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

void ExpectModelFileRefused(const std::vector<std::byte>& bytes, const std::string& words,
                            ErrorCode code = ErrorCode::kInvalidFile) {
  const TemporaryFile temporary(bytes);
  const auto file = ModelFile::Open(temporary.path());
  ASSERT_FALSE(file) << "opened, instead of: " << words;
  EXPECT_EQ(file.error().code(), code) << file.error().message();
  EXPECT_NE(file.error().message().find(words), std::string::npos) << file.error().message();
  EXPECT_NE(file.error().message().find(temporary.path()), std::string::npos)
      << file.error().message();
}

// Makes a sound file, lets `change` spoil it, and seals it anew.
void ExpectModelFileRefusedAfter(const std::function<void(TestModelFile&)>& change,
                                 const std::string& words,
                                 ErrorCode code = ErrorCode::kInvalidFile) {
  TestModelFile file = MakeTestModelFile({.tied = false, .matrices = Scheme::kQb4w});
  change(file);
  ExpectModelFileRefused(Serialize(file), words, code);
}

// --- Accidents ---------------------------------------------------------------------------------

TEST(DamagedModelFileTest, CutShortAnywhereIsAnError) {
  const std::vector<std::byte> bytes = Serialize(MakeTestModelFile());
  const size_t end_of_metadata = sizeof(FilePreamble) + PreambleOf(bytes).metadata_bytes;
  const TemporaryFile temporary(bytes);
  ASSERT_TRUE(ModelFile::Open(temporary.path()));
  for (size_t size = bytes.size() - 1;;) {
    temporary.Truncate(size);
    const auto file = ModelFile::Open(temporary.path());
    ASSERT_FALSE(file) << size;
    ASSERT_EQ(file.error().code(), ErrorCode::kInvalidFile) << file.error().message();
    if (size < end_of_metadata) {
      ASSERT_EQ(file.error().remedy().kind, RemedyKind::kCopyOrConvert) << file.error().message();
    }
    if (size == 0) break;
    size -= size > end_of_metadata + 100 ? std::min<size_t>(97, size - end_of_metadata) : 1;
  }
}

TEST(DamagedModelFileTest, LongerThanItSaysIsAnError) {
  std::vector<std::byte> bytes = Serialize(MakeTestModelFile());
  bytes.push_back({});
  ExpectModelFileRefused(bytes, "file_bytes");
}

TEST(DamagedModelFileTest, ReservedBytesThatAreNotZeroAreAnError) {
  std::vector<std::byte> bytes = Serialize(MakeTestModelFile());
  FilePreamble preamble = PreambleOf(bytes);
  ASSERT_EQ(preamble.reserved, 0u);
  preamble.reserved = 1;
  preamble.preamble_checksum = PreambleChecksum(preamble);
  std::ranges::copy(std::as_bytes(std::span(&preamble, 1)), bytes.begin());
  ExpectModelFileRefused(bytes, "reserved field is 1", ErrorCode::kUnsupported);
}

TEST(DamagedModelFileTest, AnyFlippedBitOfPreambleOrMetadataIsAnError) {
  const std::vector<std::byte> bytes = Serialize(MakeTestModelFile());
  const size_t end_of_metadata = sizeof(FilePreamble) + PreambleOf(bytes).metadata_bytes;
  for (size_t at = 0; at < end_of_metadata; ++at) {
    std::vector<std::byte> damaged(bytes.begin(), bytes.end());
    damaged[at] ^= static_cast<std::byte>(1u << (at % 8));
    const TemporaryFile temporary(damaged);
    const auto file = ModelFile::Open(temporary.path());
    ASSERT_FALSE(file) << "byte " << at;
    ASSERT_TRUE(file.error().message().find("damaged") != std::string::npos ||
                file.error().message().find("not a Cria model file") != std::string::npos)
        << file.error().message();
  }
}

TEST(DamagedModelFileTest, OtherFilesAreNotModelFiles) {
  ExpectModelFileRefused({}, "too short");
  ExpectModelFileRefused(std::vector<std::byte>(63), "too short");
  ExpectModelFileRefused(std::vector<std::byte>(4096), "is not a Cria model file");
  const TemporaryFile temporary(std::vector<std::byte>(4096));
  EXPECT_EQ(ModelFile::Open(temporary.path()).error().remedy().kind, RemedyKind::kConvert);
}

TEST(DamagedModelFileTest, AMissingFileAndAFolderAreErrors) {
  const auto missing = ModelFile::Open("/no/such/model.cria");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  EXPECT_FALSE(ModelFile::Open(testing::TempDir()));
}

// --- The preamble, sealed anew -----------------------------------------------------------------

void ExpectPreambleRefused(const std::function<void(FilePreamble&)>& change,
                           const std::string& words, ErrorCode code = ErrorCode::kInvalidFile) {
  std::vector<std::byte> bytes = Serialize(MakeTestModelFile());
  FilePreamble preamble = PreambleOf(bytes);
  change(preamble);
  SetPreamble(bytes, preamble);
  ExpectModelFileRefused(bytes, words, code);
}

TEST(ForgedPreambleTest, EveryFieldIsChecked) {
  for (const uint32_t version : {0u, 1u, 3u, ~0u}) {
    ExpectPreambleRefused([&](FilePreamble& p) { p.format_version = version; },
                          "format_version is " + std::to_string(version), ErrorCode::kUnsupported);
  }
  for (const uint64_t offset : {uint64_t{1}, uint64_t{128}, kHuge, kHuge - 63}) {
    ExpectPreambleRefused([&](FilePreamble& p) { p.packed_offset = offset; }, "packed_offset");
  }
  for (const uint64_t bytes :
       {uint64_t{1} << 20, kMaxMetadataBytes, kMaxMetadataBytes + 1, kHuge, kHuge - 63}) {
    ExpectPreambleRefused([&](FilePreamble& p) { p.metadata_bytes = bytes; }, "metadata_bytes");
  }
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{64}, kHuge}) {
    ExpectPreambleRefused([&](FilePreamble& p) { p.file_bytes = bytes; }, "file_bytes");
  }
  ExpectPreambleRefused([](FilePreamble& p) { p.metadata_digest[15] ^= 1; }, "metadata_digest");
}

TEST(ForgedPreambleTest, MetadataOfEverySizeThatIsTooSmallIsAnError) {
  const std::vector<std::byte> sound = Serialize(MakeTestModelFile());
  const uint64_t metadata_bytes = PreambleOf(sound).metadata_bytes;
  for (uint64_t size = 0; size < metadata_bytes; ++size) {
    std::vector<std::byte> bytes = sound;
    FilePreamble preamble = PreambleOf(bytes);
    preamble.metadata_bytes = size;
    SetPreamble(bytes, preamble);
    Reseal(bytes);
    const TemporaryFile temporary(bytes);
    const auto file = ModelFile::Open(temporary.path());
    if (file) {
      // Only the padding behind the last field can be missed.
      EXPECT_GT(size + 8, metadata_bytes);
    } else {
      EXPECT_EQ(file.error().code(), ErrorCode::kInvalidFile);
    }
  }
}

// --- The metadata, sealed anew -----------------------------------------------------------------

TEST(ForgedMetadataTest, TheFileThatIsSpoiltIsSound) {
  const TemporaryFile temporary(
      Serialize(MakeTestModelFile({.tied = false, .matrices = Scheme::kQb4w})));
  const auto file = ModelFile::Open(temporary.path());
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(file->VerifyPayload());
}

// Whatever a bit of sealed metadata says, opening either fails or gives a file whose every function
// works.
TEST(ForgedMetadataTest, NoFlippedBitCrashes) {
  TestModelFile file_of_two_kinds = MakeTestModelFile({.tied = false, .matrices = Scheme::kQb4w});
  file_of_two_kinds.layer_kinds = {{.rope_theta = 1e4f}, {.sliding_window = 8, .rope_theta = 1e6f}};
  file_of_two_kinds.kind_of_layer = {0, 1};
  const std::vector<std::byte> sound = Serialize(file_of_two_kinds);
  const size_t end_of_metadata = sizeof(FilePreamble) + PreambleOf(sound).metadata_bytes;
  size_t opened = 0;
  for (size_t at = sizeof(FilePreamble); at < end_of_metadata; ++at) {
    for (const unsigned mask : {0x01u, 0x80u, 0xffu}) {
      std::vector<std::byte> bytes = sound;
      bytes[at] ^= static_cast<std::byte>(mask);
      Reseal(bytes);
      const TemporaryFile temporary(bytes);
      const auto file = ModelFile::Open(temporary.path());
      if (!file) {
        ASSERT_FALSE(file.error().message().empty());
        continue;
      }
      ++opened;
      size_t piece_bytes = 0;
      for (size_t id = 0; id < file->vocabulary().size(); ++id) {
        piece_bytes += file->vocabulary().piece(id).size();
      }
      ASSERT_LE(piece_bytes, bytes.size());
      for (const TensorSpec& spec : ExpectedTensors(file->config())) {
        const StoredTensor& tensor = file->tensor(spec.role, spec.layer);
        ASSERT_LE(tensor.data.offset + tensor.data.bytes, bytes.size());
      }
      for (size_t layer = 0; layer < file->config().num_hidden_layers; ++layer) {
        ASSERT_GT(file->config().layer_kind(layer).rope_theta, 0.0f);
      }
      (void)file->VerifyPayload();
    }
  }
  // Names, checksums and real numbers may change without being wrong.
  EXPECT_GT(opened, 100u);
}

TEST(ForgedMetadataTest, UnknownFeaturesAreRefusedByName) {
  const char* reason = "required_features names \"experts\"";
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.required_features = {"experts"}; }, reason,
                              ErrorCode::kUnsupported);
  ExpectModelFileRefusedAfter(
      [](TestModelFile& f) { f.required_features = {"sliding_window", "experts"}; }, reason,
      ErrorCode::kUnsupported);
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.required_features = {"sliding_windows"}; },
                              "required_features names \"sliding_windows\"",
                              ErrorCode::kUnsupported);
}

TEST(ForgedMetadataTest, AFamilyOfAnyNameIsReadWhereItsFeaturesAreKnown) {
  TestModelFile file = MakeTestModelFile({.biases_and_norms = true});
  file.config.architecture = "NewForCausalLM";
  file.required_features = {"qkv_bias", "o_bias", "mlp_bias", "qk_norm"};
  const TemporaryFile temporary(Serialize(file));
  const auto read = ModelFile::Open(temporary.path());
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->config().architecture, "NewForCausalLM");
  EXPECT_TRUE(read->config().qk_norm);
  file.required_features.push_back("new_feature");
  ExpectModelFileRefused(Serialize(file), "required_features names \"new_feature\"",
                         ErrorCode::kUnsupported);
}

TEST(ForgedMetadataTest, ConfigurationsAreValidated) {
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.config.hidden_size = 0; },
                              "hidden_size is 0");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.config.num_hidden_layers = ~0u; },
                              "num_hidden_layers is 4294967295");
  ExpectModelFileRefusedAfter(
      [](TestModelFile& f) { f.config.layer_kinds[0].sliding_window = ~0u; },
      "sliding_window is 4294967295");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.config.rms_norm_eps = -1.0f; },
                              "rms_norm_eps");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.rope_scaling_type = 7; },
                              "rope_scaling.type is 7");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.rope_scaling_type = 2; },
                              "original_max_position_embeddings");
}

TEST(ForgedMetadataTest, KindsOfLayersAreValidated) {
  const auto expect_refused = [](const std::vector<LayerKind>& kinds,
                                 const std::vector<uint8_t>& kind_of_layer,
                                 const std::string& words) {
    ExpectModelFileRefusedAfter(
        [&](TestModelFile& f) {
          f.layer_kinds = kinds;
          f.kind_of_layer = kind_of_layer;
        },
        words);
  };
  const LayerKind full = {.rope_theta = 1e4f};
  const LayerKind windowed = {.sliding_window = 8, .rope_theta = 1e4f};
  const std::vector<LayerKind> two = {full, windowed};
  // There are two layers.
  expect_refused({}, {0, 0}, "kind_of_layer has 2 entries, but there are 2 layers of 1 kinds");
  expect_refused({full}, {0, 0}, "kind_of_layer has 2 entries");
  expect_refused(two, {}, "kind_of_layer has 0 entries, but there are 2 layers of 2 kinds");
  expect_refused(two, {0}, "kind_of_layer has 1 entries");
  expect_refused(two, {0, 1, 0}, "kind_of_layer has 3 entries");
  expect_refused(two, std::vector<uint8_t>(5000, 1), "kind_of_layer has 5000 entries");
  expect_refused(two, {0, 0}, "kind_of_layer has no layer of layer_kinds[1]");
  expect_refused({full, windowed, windowed}, {0, 1}, "has no layer of layer_kinds[2]");
  expect_refused(two, {0, 2}, "kind_of_layer has no layer of layer_kinds[1]");
  expect_refused(std::vector<LayerKind>(9, full), {0, 1}, "layer_kinds must have 1 to 8 entries");
  expect_refused(std::vector<LayerKind>(50, full), {0, 1}, "layer_kinds must have 1 to 8 entries");
  const auto expect_kind_refused = [&](const LayerKind& kind, const std::string& words) {
    expect_refused({full, kind}, {0, 1}, words);
  };
  expect_kind_refused({.sliding_window = ~0u, .rope_theta = 1e4f},
                      "layer_kinds[1].sliding_window is 4294967295");
  expect_kind_refused({.rope_theta = 0.0f}, "layer_kinds[1].rope_theta is 0");
  expect_kind_refused({.rope_theta = 1e4f, .rope_scaling = {.type = RopeScaling::Type(7)}},
                      "rope_scaling.type is 7");
  expect_kind_refused({.rope_theta = 1e4f, .rope_scaling = {.type = RopeScaling::Type::kLlama3}},
                      "layer_kinds[1].rope_scaling.original_max_position_embeddings is 0");
}

// A third layer, so that both kinds are used beside an index without a kind.
TEST(ForgedMetadataTest, EveryLayersKindMustExist) {
  TestModelFile file = MakeTestModelFile();
  file.config.num_hidden_layers = 3;
  file.layer_kinds = {{.rope_theta = 1e4f}, {.sliding_window = 8, .rope_theta = 1e4f}};
  for (const uint8_t kind : {2, 255}) {
    file.kind_of_layer = {0, 1, kind};
    ExpectModelFileRefused(Serialize(file), "kind_of_layer names layer_kinds[" +
                                                std::to_string(kind) + "], but there are 2");
  }
}

TEST(ForgedMetadataTest, VocabulariesAreValidated) {
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.config.vocab_size = 9; },
                              "tokenizer.piece_types has 8 entries, but config.vocab_size is 9");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.piece_types.pop_back(); },
                              "tokenizer.piece_types has 7 entries");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.tokenizer_family = 2; },
                              "tokenizer.family is 2");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.piece_offsets.pop_back(); },
                              "piece_offsets");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.piece_offsets[8] = ~0u; }, "piece_offsets");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.piece_offsets[4] = ~0u; }, "piece_offsets");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.piece_types[3] = 6; }, "piece_types[3]");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.sorted_ids[0] = 8; }, "sorted_ids[0]");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.merges[0].merged = 8; }, "merges[0].merged");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.merge_offsets.clear(); }, "merge_offsets");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.bos_token_id = 8; }, "bos_token_id");
}

TEST(ForgedMetadataTest, StopIdsAreValidated) {
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.stop_token_ids = {2, 8}; },
                              "stop_token_ids names 8");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.stop_token_ids = {-1}; },
                              "stop_token_ids names -1");
}

TEST(ForgedMetadataTest, HowDocumentsAreRankedIsValidated) {
  const auto rank = [](const char* prompt, size_t num_numbers, float number) {
    return [=](TestModelFile& f) {
      f.reranking_prompt = prompt;
      f.reranking_weight.assign(num_numbers, number);
    };
  };
  const size_t hidden_size = MakeTestModelFile().config.hidden_size;
  ExpectModelFileRefusedAfter(rank("{query}", hidden_size, 1.0f), "does not have {document} once");
  ExpectModelFileRefusedAfter(rank("{query}{document}{query}", hidden_size, 1.0f),
                              "does not have {query} once");
  ExpectModelFileRefusedAfter(rank("{query}{document}", hidden_size - 1, 1.0f),
                              "the weight for ranking has");
  ExpectModelFileRefusedAfter(
      rank("{query}{document}", hidden_size, std::numeric_limits<float>::infinity()),
      "a number that is not finite");
}

TEST(ForgedMetadataTest, SectionsMustLieInTheFileInOrder) {
  const auto with_sections = [](const std::vector<FileRange>& sections) {
    ExpectModelFileRefusedAfter([&](TestModelFile& f) { f.sections = sections; },
                                "sections: bytes");
  };
  with_sections({{kSectionAlignment + 64, 64}});
  with_sections({{kSectionAlignment, kHuge}});
  with_sections({{kSectionAlignment, kHuge - kSectionAlignment}});
  with_sections({{kHuge - kSectionAlignment + 1, 1}});
  with_sections({{uint64_t{1} << 40, 0}});
  with_sections({{0, 64}});
  with_sections({{kSectionAlignment, 100}, {kSectionAlignment, 100}});
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.sections.clear(); },
                              "outside every section");
}

TEST(ForgedMetadataTest, TensorsMustBeThoseThatTheConfigurationCallsFor) {
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.tensors.clear(); },
                              "embed_tokens is missing");
  for (size_t missing = 0; missing < 15; ++missing) {
    const TestModelFile sound = MakeTestModelFile({.tied = false});
    ExpectModelFileRefusedAfter(
        [&](TestModelFile& f) { f.tensors.erase(f.tensors.begin() + static_cast<long>(missing)); },
        sound.tensors[missing].spec.Name() + " is missing or out of order");
  }
  // A field that says more or less than the table holds.
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.config.qkv_bias = true; },
                              "layers.0.qkv_bias is missing or out of order");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.config.qk_norm = true; },
                              "layers.0.q_norm is missing or out of order");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { std::swap(f.tensors[2], f.tensors[3]); },
                              "layers.0.qkv_proj is missing or out of order");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.tensors.push_back(f.tensors.back()); },
                              "1 entries are more");
  ExpectModelFileRefusedAfter([](TestModelFile& f) { f.tensors[1].spec.layer = 1; },
                              "layers.0.input_layernorm is missing");
  ExpectModelFileRefusedAfter(
      [](TestModelFile& f) { f.tensors[0].spec.role = static_cast<TensorRole>(200); },
      "embed_tokens is missing");
}

TEST(ForgedMetadataTest, LayoutsMustFitTheConfiguration) {
  const auto with_qkv = [](const std::function<void(StoredTensor&)>& change,
                           const std::string& words, ErrorCode code = ErrorCode::kInvalidFile) {
    ExpectModelFileRefusedAfter([&](TestModelFile& f) { change(f.Find(TensorRole::kQkvProj, 1)); },
                                words, code);
  };
  for (const int scheme : {kNumSchemes, 255}) {
    with_qkv([&](StoredTensor& t) { t.layout.scheme = static_cast<Scheme>(scheme); },
             "layers.1.qkv_proj.scheme is " + std::to_string(scheme), ErrorCode::kUnsupported);
  }
  with_qkv([](StoredTensor& t) { t.layout.output_channels = 15; }, "layers.1.qkv_proj is [15, 8]");
  with_qkv([](StoredTensor& t) { t.layout.input_channels = 9; }, "layers.1.qkv_proj is [16, 9]");
  for (const size_t block_size :
       {size_t{0}, size_t{16}, size_t{33}, size_t{64}, size_t{512}, size_t{0xffffffff}}) {
    with_qkv([&](StoredTensor& t) { t.layout.block_size = block_size; },
             "block_size " + std::to_string(block_size));
  }
  for (const size_t padded : {size_t{0}, size_t{8}, size_t{64}, size_t{0xffffffe0}}) {
    with_qkv([&](StoredTensor& t) { t.layout.padded_input_channels = padded; },
             "padded_input_channels " + std::to_string(padded));
  }
  // A wrong scheme of the right number needs other sizes.
  with_qkv([](StoredTensor& t) { t.layout.scheme = Scheme::kQc8w; }, "do not fit its scheme qc8w");
  with_qkv(
      [](StoredTensor& t) {
        t.layout.scheme = Scheme::kF32;
        t.layout.block_size = 0;
        t.layout.padded_input_channels = 8;
      },
      "bytes of data");
  // Rows of 8 inputs are not whole blocks.
  with_qkv([](StoredTensor& t) { t.layout.scheme = Scheme::kQ4K; }, "do not fit its scheme Q4_K");
  with_qkv(
      [](StoredTensor& t) {
        t.layout.scheme = Scheme::kW4G64;
        t.layout.block_size = 0;
        t.layout.padded_input_channels = 32;
      },
      "do not fit its scheme w4g64");
  with_qkv([](StoredTensor& t) { t.layout.factor = 2.0f; }, "qkv_proj.factor is 2");
  with_qkv([](StoredTensor& t) { t.data.bytes -= 1; }, "255 bytes of data");
  with_qkv([](StoredTensor& t) { t.data.bytes = kHuge; }, "bytes of data");
  with_qkv([](StoredTensor& t) { t.scales.bytes = 0; }, "and 0 of scales");
  with_qkv([](StoredTensor& t) { t.scales.bytes += 2; }, "of scales");
  ExpectModelFileRefusedAfter(
      [](TestModelFile& f) { f.Find(TensorRole::kNorm).layout.scheme = Scheme::kQc8w; },
      "norm.scheme is qc8w, but a norm or bias must be f32");
}

TEST(ForgedMetadataTest, TensorsMustLieInASectionOnTheirBoundaryAndApart) {
  const auto with_data = [](uint64_t offset) {
    ExpectModelFileRefusedAfter(
        [&](TestModelFile& f) { f.Find(TensorRole::kDownProj, 0).data.offset = offset; },
        "layers.0.down_proj lies at bytes");
  };
  with_data(0);
  with_data(64);
  with_data(kSectionAlignment - 64);
  with_data(kSectionAlignment + 32);
  with_data(uint64_t{1} << 40);
  with_data(kHuge - 63);
  with_data(kHuge);
  for (const uint64_t offset : {uint64_t{0}, kSectionAlignment + 2, kHuge - 63}) {
    ExpectModelFileRefusedAfter(
        [&](TestModelFile& f) { f.Find(TensorRole::kDownProj, 0).scales.offset = offset; },
        "layers.0.down_proj lies at bytes");
  }
  ExpectModelFileRefusedAfter(
      [](TestModelFile& f) {
        f.Find(TensorRole::kDownProj, 0).data = f.Find(TensorRole::kDownProj, 1).data;
      },
      "two of them share byte");
  ExpectModelFileRefusedAfter(
      [](TestModelFile& f) {
        f.Find(TensorRole::kNorm).data.offset = f.Find(TensorRole::kQkvProj, 0).data.offset + 64;
      },
      "two of them share byte");
}

TEST(ForgedMetadataTest, TheSlackBehindTheLastTensorMustBeThere) {
  TestModelFile file = MakeTestModelFile();
  EXPECT_TRUE(ModelFile::Open(TemporaryFile(Serialize(file)).path()));
  file.file_bytes -= 1;
  ExpectModelFileRefused(Serialize(file), "without the slack behind it");
}

TEST(ForgedMetadataTest, AModelThatIsLargerThanItsFileIsRefusedWithoutTakingMemory) {
  ExpectModelFileRefusedAfter(
      [](TestModelFile& f) {
        f.config.num_hidden_layers = 1024;
        f.config.intermediate_size = 1u << 19;
      },
      "layers.0.gate_up_proj is [24, 8], but the configuration calls for [1048576, 8]");
}

}  // namespace
}  // namespace cria
