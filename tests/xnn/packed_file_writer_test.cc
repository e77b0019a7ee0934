#include "xnn/packed_file_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/format.h"
#include "model/packed_file.h"
#include "xnn/pack_cache.h"
#include "xnn/packed_model.h"

namespace cria::xnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Kind {
  Scheme weights;
  Scheme embedding;
  Scheme head;
  bool tied;
  bool padded = false;
};

std::string NameOf(const testing::TestParamInfo<Kind>& info) {
  const Kind& kind = info.param;
  return Format("{}_{}_{}_{}{}", SchemeName(kind.weights), SchemeName(kind.embedding),
                SchemeName(kind.head), kind.tied ? "tied" : "untied", kind.padded ? "_padded" : "");
}

ConvertedModel MakeModel(const Kind& kind) {
  support::CheckpointSpec spec = kind.padded ? support::SpecPadded() : support::SpecGqa();
  spec.config.tie_word_embeddings = kind.tied;
  return ConvertedModel(spec,
                        {.weights = kind.weights, .embedding = kind.embedding, .head = kind.head});
}

class EveryKindOfModel : public testing::TestWithParam<Kind> {
 protected:
  std::string Path(const std::string& name) const { return converted_.folder() / name; }

  ConvertedModel converted_ = MakeModel(GetParam());
  ModelFile model_ = converted_.Open();
  ThreadPool pool_ = Unwrap(ThreadPool::Create(2));
};

TEST_P(EveryKindOfModel, PackedTwiceAndOnAnyThreadsIsTheSameFile) {
  for (const auto& write : {WritePackedFile, WriteStandaloneFile}) {
    std::vector<std::string> files;
    for (const size_t threads : {1, 1, 3}) {
      const ThreadPool pool = Unwrap(ThreadPool::Create(threads));
      const WrittenPack written =
          Unwrap(write(model_, Path("packed"), Unwrap(ThisProcessor()), pool, nullptr));
      files.push_back(support::ReadFile(Path("packed")));
      EXPECT_EQ(written.file_bytes, files.back().size());
    }
    EXPECT_TRUE(files[0] == files[1]);
    EXPECT_TRUE(files[0] == files[2]);
  }
}

TEST_P(EveryKindOfModel, APackedFileIsSoundAndGivesTheLogits) {
  const WrittenPack written =
      Unwrap(WritePackedFile(model_, Path("packed"), Unwrap(ThisProcessor()), pool_, nullptr));
  EXPECT_EQ(written.doubled_bytes, 0u);
  const PackedFile file = Unwrap(PackedFile::Open(Path("packed")));
  EXPECT_TRUE(file.VerifyPayload());
  EXPECT_EQ(file.identity().model_digest, model_.digest());
  EXPECT_EQ(file.identity().model_name, model_.name());
  const PackedWeights packed = Unwrap(PackedWeights::PackInMemory(model_, pool_, nullptr));
  const PackedWeights mapped = Unwrap(PackedWeights::Map(model_, file));
  EXPECT_TRUE(SameBytes(mapped, packed));
  EXPECT_TRUE(SameBits(Logits(model_, mapped), Logits(model_, packed)));
}

TEST_P(EveryKindOfModel, AStandaloneFileIsTheSameModel) {
  const WrittenPack written = Unwrap(
      WriteStandaloneFile(model_, Path("standalone"), Unwrap(ThisProcessor()), pool_, nullptr));
  const ModelFile standalone = Unwrap(ModelFile::Open(Path("standalone")));
  EXPECT_EQ(written.file_bytes, standalone.size_bytes());
  EXPECT_EQ(standalone.digest(), model_.digest());
  EXPECT_EQ(standalone.metadata_bytes(), model_.metadata_bytes());
  EXPECT_TRUE(standalone.VerifyPayload());
  EXPECT_TRUE(
      Unwrap(PackedFile::Open(Path("standalone"), standalone.packed_offset())).VerifyPayload());
  for (const StoredTensor& tensor : standalone.tensors()) {
    const bool portable = tensor.spec.is_vector() || tensor.spec.role == TensorRole::kEmbedTokens;
    EXPECT_EQ(standalone.is_stored(tensor), portable) << tensor.spec.Name();
  }
  const StoredTensor& head = model_.tensor(TensorRole::kLmHead);
  EXPECT_EQ(written.doubled_bytes,
            head.spec.role == TensorRole::kEmbedTokens ? head.data.bytes + head.scales.bytes : 0u);

  // Whatever the options say, its weights are in it.
  std::vector<std::string> notices;
  const PackingOptions options = {
      .packed_path = Path("nothing"),
      .cache_folder = Path("cache"),
      .on_progress = {},
      .on_notice = [&](std::string_view notice) { notices.emplace_back(notice); }};
  const PackedWeights mapped = Unwrap(LoadPackedWeights(standalone, options, pool_));
  EXPECT_TRUE(mapped.is_mapped());
  EXPECT_TRUE(notices.empty());
  const PackedWeights packed = Unwrap(PackedWeights::PackInMemory(model_, pool_, nullptr));
  EXPECT_TRUE(SameBits(Logits(standalone, mapped), Logits(model_, packed)));
  EXPECT_FALSE(std::filesystem::exists(Path("cache")));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, EveryKindOfModel,
    testing::Values(Kind{Scheme::kF32, Scheme::kF32, Scheme::kF32, false},
                    Kind{Scheme::kF32, Scheme::kF32, Scheme::kF32, true},
                    Kind{Scheme::kQc8w, Scheme::kQc8w, Scheme::kQc8w, false},
                    Kind{Scheme::kQc8w, Scheme::kQc8w, Scheme::kQc8w, true},
                    Kind{Scheme::kQb4w, Scheme::kQb4w, Scheme::kQb4w, false},
                    Kind{Scheme::kQb4w, Scheme::kQb4w, Scheme::kQb4w, true},
                    Kind{Scheme::kQb4w, Scheme::kQc8w, Scheme::kQc8w, true},
                    Kind{Scheme::kQb4w, Scheme::kQc8w, Scheme::kQb4w, true},
                    Kind{Scheme::kQb4w, Scheme::kF32, Scheme::kQc8w, false},
                    Kind{Scheme::kQb4w, Scheme::kQb4w, Scheme::kQb4w, false, true},
                    Kind{Scheme::kQc8w, Scheme::kQb4w, Scheme::kF32, true, true}),
    NameOf);

class PackedFileWriterTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return converted_.folder() / name; }
  ModelFile WriteStandalone() const {
    Unwrap(
        WriteStandaloneFile(model_, Path("standalone"), Unwrap(ThisProcessor()), pool_, nullptr));
    return Unwrap(ModelFile::Open(Path("standalone")));
  }

  ConvertedModel converted_;
  ModelFile model_ = converted_.Open();
  ThreadPool pool_ = Unwrap(ThreadPool::Create(2));
};

TEST_F(PackedFileWriterTest, WhatIsPackedAlreadyIsAUsageError) {
  const ModelFile standalone = WriteStandalone();
  const auto names = support::FileNames(converted_.folder());
  for (const auto& write : {WritePackedFile, WriteStandaloneFile}) {
    const auto written = write(standalone, Path("again"), Unwrap(ThisProcessor()), pool_, nullptr);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code(), ErrorCode::kUsage);
    EXPECT_THAT(written.error().message(), HasSubstr("already has packed weights"));
  }
  EXPECT_FALSE(PackedWeights::PackInMemory(standalone, pool_, nullptr));
  EXPECT_EQ(support::FileNames(converted_.folder()), names);
}

// Packed weights in place of the model would be all that is left of it.
TEST_F(PackedFileWriterTest, TheModelItselfIsNotReplaced) {
  const std::string before = support::ReadFile(converted_.path());
  std::filesystem::create_symlink("model.cria", Path("link"));
  std::filesystem::create_hard_link(converted_.path(), Path("hard"));
  for (const std::string& path :
       {converted_.path(), Path("link"), Path("hard"),
        Path("../") + "/" + converted_.folder().filename().string() + "/model.cria"}) {
    for (const auto& write : {WritePackedFile, WriteStandaloneFile}) {
      const auto written = write(model_, path, Unwrap(ThisProcessor()), pool_, nullptr);
      ASSERT_FALSE(written) << path;
      EXPECT_EQ(written.error().code(), ErrorCode::kUsage);
      EXPECT_THAT(written.error().message(), HasSubstr("another output"));
    }
  }
  EXPECT_TRUE(support::ReadFile(converted_.path()) == before);
}

TEST_F(PackedFileWriterTest, AStandaloneFileOfAnotherProcessorIsRefused) {
  const size_t offset = WriteStandalone().packed_offset();
  ForgeFingerprint(Path("standalone"), offset);
  const ModelFile forged = Unwrap(ModelFile::Open(Path("standalone")));
  const auto weights = LoadPackedWeights(forged, {.cache_folder = Path("cache")}, pool_);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(weights.error().remedy().kind, RemedyKind::kPackStandalone);
  EXPECT_THAT(weights.error().message(), testing::AllOf(HasSubstr(Path("standalone")),
                                                        HasSubstr("packed for another processor")));
}

TEST_F(PackedFileWriterTest, ADamagedStandaloneFileIsRefused) {
  const size_t offset = WriteStandalone().packed_offset();
  const std::string sound = support::ReadFile(Path("standalone"));
  const auto load = [&](const std::string& bytes) -> Status {
    support::WriteFile(Path("damaged"), bytes);
    CRIA_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(Path("damaged")));
    CRIA_RETURN_IF_ERROR(LoadPackedWeights(model, {.cache_folder = Path("cache")}, pool_));
    return {};
  };
  ASSERT_TRUE(load(sound));
  const size_t head = sizeof(FilePreamble) + PreambleAt(sound, offset).metadata_bytes;
  for (size_t at = offset; at < offset + head; ++at) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    const Status loaded = load(bytes);
    ASSERT_FALSE(loaded) << at;
    ASSERT_EQ(loaded.error().code(), ErrorCode::kInvalidFile) << loaded.error().message();
  }
  for (size_t i = 0; i < 100; ++i) {
    const Status loaded = load(sound.substr(0, i * sound.size() / 100));
    ASSERT_FALSE(loaded) << i;
    ASSERT_EQ(loaded.error().code(), ErrorCode::kInvalidFile) << loaded.error().message();
  }
  EXPECT_FALSE(load(sound + std::string(64, '\0')));
}

// The processor packs alike for the schemes that the model has.
TEST_F(PackedFileWriterTest, TakesThePlaceOfAProcessorThatPacksAlike) {
  const SchemeFingerprints own = Unwrap(FingerprintSchemes());
  const auto target = Unwrap(TargetInPlaceOf({"alike", own}, model_));
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->processor, "alike");
  EXPECT_EQ(target->layout_fingerprint, Unwrap(LayoutFingerprint()));

  for (const Scheme scheme : {Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w}) {
    const bool has_scheme = std::ranges::any_of(
        MultipliedMatrices(model_),
        [&](const StoredTensor* matrix) { return matrix->layout.scheme == scheme; });
    SchemeFingerprints other = own;
    ++other[static_cast<size_t>(scheme)];
    const auto place = Unwrap(TargetInPlaceOf({"other", other}, model_));
    EXPECT_EQ(place.has_value(), !has_scheme) << SchemeName(scheme);
    if (place.has_value()) {
      EXPECT_EQ(place->layout_fingerprint, LayoutFingerprint(other));
    }
  }
}

TEST_F(PackedFileWriterTest, WhatIsPackedForAnotherProcessorIsRefusedByItsName) {
  const PackTarget target = {.processor = "another-core", .layout_fingerprint = 1};
  Unwrap(WriteStandaloneFile(model_, Path("standalone"), target, pool_, nullptr));
  const auto weights = LoadPackedWeights(Unwrap(ModelFile::Open(Path("standalone"))), {}, pool_);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(weights.error().message(), HasSubstr("another-core"));
}

TEST_F(PackedFileWriterTest, StoppingLeavesNothingAndWhatWasThere) {
  support::WriteFile(Path("there"), "before");
  const auto names = support::FileNames(converted_.folder());
  for (const auto& write : {WritePackedFile, WriteStandaloneFile}) {
    for (const char* name : {"new", "there"}) {
      for (int calls = 0; calls < 9; ++calls) {
        int left = calls;
        const auto written =
            write(model_, Path(name), Unwrap(ThisProcessor()), pool_,
                  [&](uint64_t, uint64_t, std::string_view) { return left-- > 0; });
        ASSERT_FALSE(written) << calls;
        EXPECT_EQ(written.error().code(), ErrorCode::kCancelled);
        ASSERT_EQ(support::FileNames(converted_.folder()), names);
      }
    }
  }
  EXPECT_EQ(support::ReadFile(Path("there")), "before");
}

TEST_F(PackedFileWriterTest, DamagedPortableWeightsLeaveNothing) {
  std::string bytes = support::ReadFile(converted_.path());
  const FileRange range = model_.tensor(TensorRole::kDownProj, 1).data;
  bytes[range.offset + range.bytes / 2] ^= 4;
  support::WriteFile(Path("damaged.cria"), bytes);
  const ModelFile damaged = Unwrap(ModelFile::Open(Path("damaged.cria")));
  const auto names = support::FileNames(converted_.folder());
  for (const auto& write : {WritePackedFile, WriteStandaloneFile}) {
    const auto written = write(damaged, Path("packed"), Unwrap(ThisProcessor()), pool_, nullptr);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code(), ErrorCode::kInvalidFile);
    EXPECT_THAT(written.error().message(), HasSubstr("layers.1.down_proj"));
  }
  EXPECT_EQ(support::FileNames(converted_.folder()), names);
}

}  // namespace
}  // namespace cria::xnn
