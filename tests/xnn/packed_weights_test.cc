#include "xnn/packed_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/model_outline.h"
#include "xnn/packed_file_writer.h"
#include "xnn/packed_model.h"

namespace cria::xnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PackedWeightsTest : public testing::Test {
 protected:
  PackedFile WritePacked(const ModelFile& model, const std::string& name) const {
    const std::string path = converted_.folder() / name;
    Unwrap(WritePackedFile(model, path, Unwrap(ThisProcessor()), pool_, nullptr));
    return Unwrap(PackedFile::Open(path));
  }
  static void ExpectRefused(const Result<PackedWeights>& weights, ErrorCode code,
                            const std::vector<std::string>& words) {
    ASSERT_FALSE(weights);
    EXPECT_EQ(weights.error().code(), code);
    EXPECT_EQ(weights.error().remedy().kind, RemedyKind::kPack);
    for (const std::string& word : words) EXPECT_THAT(weights.error().message(), HasSubstr(word));
  }

  ConvertedModel converted_;
  ModelFile model_ = converted_.Open();
  ThreadPool pool_ = Unwrap(ThreadPool::Create(2));
};

TEST_F(PackedWeightsTest, MappedAndInMemoryAreTheSameBytesAndLogits) {
  const PackedFile file = WritePacked(model_, "packed");
  const PackedWeights mapped = Unwrap(PackedWeights::Map(model_, file));
  const PackedWeights packed = Unwrap(PackedWeights::PackInMemory(model_, pool_, nullptr));
  EXPECT_TRUE(mapped.is_mapped());
  EXPECT_FALSE(packed.is_mapped());
  EXPECT_EQ(mapped.matrices().size(), MultipliedMatrices(model_).size());
  EXPECT_TRUE(SameBytes(mapped, packed));
  EXPECT_TRUE(SameBits(Logits(model_, mapped), Logits(model_, packed)));
  for (const auto matrix : packed.matrices()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.data()) % kPackedAlignment, 0u);
  }
}

TEST_F(PackedWeightsTest, ThreadsChangeNoByte) {
  const PackedWeights expected = Unwrap(PackedWeights::PackInMemory(model_, pool_, nullptr));
  for (const size_t threads : {1, 3, 5}) {
    const ThreadPool pool = Unwrap(ThreadPool::Create(threads));
    EXPECT_TRUE(SameBytes(Unwrap(PackedWeights::PackInMemory(model_, pool, nullptr)), expected));
  }
}

TEST_F(PackedWeightsTest, OutlivesTheFileObjectAndTheNameOfTheFile) {
  PackedWeights weights = Unwrap(PackedWeights::Map(model_, WritePacked(model_, "packed")));
  std::filesystem::remove(converted_.folder() / "packed");
  const PackedWeights moved = std::move(weights);
  const PackedWeights packed = Unwrap(PackedWeights::PackInMemory(model_, pool_, nullptr));
  EXPECT_TRUE(SameBytes(moved, packed));
}

TEST_F(PackedWeightsTest, RefusesWhatWasPackedFromAnotherModel) {
  support::CheckpointSpec spec = support::SpecGqa();
  spec.seed = 2;
  const ConvertedModel other(spec);
  ExpectRefused(
      PackedWeights::Map(other.Open(), WritePacked(model_, "packed")), ErrorCode::kUnsupported,
      {"packed: was packed from another model", std::string(model_.name()), other.path()});
}

TEST_F(PackedWeightsTest, RefusesWhatWasPackedForAnotherProcessor) {
  const std::string path = WritePacked(model_, "packed").path();
  ForgeFingerprint(path);
  ExpectRefused(PackedWeights::Map(model_, Unwrap(PackedFile::Open(path))), ErrorCode::kUnsupported,
                {path, "was packed for another processor", platform::ReadCpuTopology().name});
}

TEST_F(PackedWeightsTest, RefusesMatricesOfOtherSizesOrAnotherNumber) {
  const std::vector<uint64_t> sound = Unwrap(PackedBytes(OutlineOf(model_).matrices));
  const auto expect_refused = [&](const std::vector<uint64_t>& sizes) {
    PackedFilePlan plan({.model_name = "m",
                         .processor = "p",
                         .model_digest = model_.digest(),
                         .layout_fingerprint = Unwrap(LayoutFingerprint())},
                        sizes, 0);
    std::string bytes(plan.file_bytes(), '\0');
    const std::vector<std::byte> head = plan.Head();
    std::memcpy(bytes.data(), head.data(), head.size());
    const std::string path = converted_.folder() / "forged";
    support::WriteFile(path, bytes);
    const PackedFile file = Unwrap(PackedFile::Open(path));
    if (sizes == sound) {
      EXPECT_TRUE(PackedWeights::Map(model_, file));
    } else {
      ExpectRefused(PackedWeights::Map(model_, file), ErrorCode::kInvalidFile,
                    {path, "do not have the sizes"});
    }
  };
  expect_refused(sound);
  for (size_t i = 0; i < sound.size(); ++i) {
    for (const int64_t change : {-64, -1, 1, 64}) {
      std::vector<uint64_t> sizes = sound;
      sizes[i] += static_cast<uint64_t>(change);
      expect_refused(sizes);
    }
  }
  expect_refused({sound.begin(), sound.end() - 1});
  expect_refused({1});
  std::vector<uint64_t> more = sound;
  more.push_back(64);
  expect_refused(more);
  std::vector<uint64_t> swapped = sound;
  std::swap(swapped.front(), swapped.back());
  expect_refused(swapped);
}

TEST_F(PackedWeightsTest, ProgressGrowsToTheWholeAndCanStop) {
  std::vector<uint64_t> done;
  uint64_t whole = 0;
  Unwrap(PackedWeights::PackInMemory(model_, pool_,
                                     [&](uint64_t bytes, uint64_t total, std::string_view matrix) {
                                       done.push_back(bytes);
                                       whole = total;
                                       EXPECT_FALSE(matrix.empty());
                                       return true;
                                     }));
  ASSERT_GE(done.size(), MultipliedMatrices(model_).size());
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(done.back(), whole);
  for (size_t calls = 1; calls <= done.size(); ++calls) {
    size_t left = calls;
    const auto stopped = PackedWeights::PackInMemory(
        model_, pool_, [&](uint64_t, uint64_t, std::string_view) { return --left > 0; });
    ASSERT_FALSE(stopped) << calls;
    EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
  }
}

TEST_F(PackedWeightsTest, DamagedPortableWeightsAreAnErrorThatNamesThem) {
  const std::string sound = support::ReadFile(converted_.path());
  for (const StoredTensor* matrix : MultipliedMatrices(model_)) {
    for (const uint64_t at :
         {matrix->data.offset, matrix->data.offset + matrix->data.bytes - 1,
          // The lowest bits of a scale: the packing itself has nothing against them.
          matrix->scales.offset, matrix->scales.offset + matrix->scales.bytes - 4}) {
      std::string bytes = sound;
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      const std::string path = converted_.folder() / "damaged.cria";
      support::WriteFile(path, bytes);
      const auto packed =
          PackedWeights::PackInMemory(Unwrap(ModelFile::Open(path)), pool_, nullptr);
      ASSERT_FALSE(packed) << matrix->spec.Name() << " at " << at;
      EXPECT_EQ(packed.error().code(), ErrorCode::kInvalidFile);
      EXPECT_THAT(packed.error().message(), AllOf(HasSubstr(path), HasSubstr(matrix->spec.Name()),
                                                  HasSubstr("checksum does not match")));
    }
  }
}

}  // namespace
}  // namespace cria::xnn
