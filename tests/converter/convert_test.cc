#include "converter/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "converter/convert_fixture.h"
#include "converter/test_checkpoint.h"
#include "model/file_layout.h"
#include "model/model_file.h"
#include "support/files.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::CheckpointSpec;
using ::testing::HasSubstr;

TEST_F(ConvertTest, ReportsWhatQuantizationCost) {
  Make(support::SpecGqa());
  const auto report = Run({});
  ASSERT_TRUE(report) << report.error().message();
  uint64_t weights = 0;
  uint64_t bytes = 0;
  for (const TensorKindReport& kind : report->kinds) {
    weights += kind.num_weights;
    bytes += kind.stored_bytes;
    const double relative = kind.relative_rms_error();
    if (kind.scheme == Scheme::kF32) {
      EXPECT_EQ(relative, 0.0);
    }
    if (kind.scheme == Scheme::kQc8w) {
      EXPECT_TRUE(relative > 0.002 && relative < 0.01) << relative;
    }
    if (kind.scheme == Scheme::kQb4w) {
      EXPECT_TRUE(relative > 0.05 && relative < 0.1) << relative;
    }
  }
  EXPECT_EQ(weights, report->num_parameters);
  EXPECT_DOUBLE_EQ(report->bits_per_weight,
                   8.0 * static_cast<double>(bytes) / static_cast<double>(weights));
}

TEST_F(ConvertTest, AFileThatPrefersAnotherCacheIsTheSameBesides) {
  Make(support::SpecGqa());
  const std::string without = RunToBytes({});
  for (const bool prefers : {false, true}) {
    bool was_whole = false;
    auto conversion = ConvertUncommitted(
        checkpoint_, output_, {}, {}, [&](platform::File written) -> Result<bool> {
          const auto model = ModelFile::Open(std::move(written));
          EXPECT_TRUE(model) << model.error().message();
          was_whole = model && model->VerifyPayload() && !model->prefers_f16_cache();
          return prefers;
        });
    ASSERT_TRUE(conversion) << conversion.error().message();
    ASSERT_TRUE(conversion->Commit());
    EXPECT_TRUE(was_whole);
    const auto model = ModelFile::Open(output_.string());
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->prefers_f16_cache(), prefers);
    EXPECT_EQ(model->digest(), conversion->report().digest);
    EXPECT_TRUE(model->VerifyPayload());
    const std::string bytes = support::ReadFile(output_);
    ASSERT_EQ(bytes.size(), without.size());
    const size_t weights = model->tensors().front().data.offset;
    EXPECT_EQ(bytes.substr(weights), without.substr(weights));
    EXPECT_EQ(bytes == without, !prefers);
  }
}

TEST_F(ConvertTest, NothingIsLeftIfAskingForTheCacheFails) {
  Make(support::SpecGqa());
  const auto conversion = ConvertUncommitted(
      checkpoint_, output_, {}, {},
      [](const platform::File&) -> Result<bool> { return Fail(ErrorCode::kCancelled, "stopped"); });
  EXPECT_FALSE(conversion);
  ExpectNothingWritten();
}

TEST_F(ConvertTest, ProgressRisesToTheEnd) {
  Make(support::SpecMha());
  uint64_t done = 0;
  uint64_t total = 0;
  const auto report = Run({}, [&](const ConvertProgress& progress) {
    EXPECT_GE(progress.done_weights, done);
    EXPECT_FALSE(progress.tensor.empty());
    done = progress.done_weights;
    total = progress.total_weights;
    return true;
  });
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(done, total);
  EXPECT_EQ(total, report->num_parameters);
}

TEST_F(ConvertTest, CancellingLeavesNothing) {
  Make(support::SpecMha());
  int calls = 0;
  const auto report = Run({}, [&](const ConvertProgress&) { return ++calls < 5; });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(calls, 5);
  ExpectNothingWritten();
}

TEST_F(ConvertTest, AFailureLeavesTheOldFileAlone) {
  Make(support::SpecMha());
  support::WriteFile(output_, "precious");
  const ConvertOptions overwriting = {.overwrite = true};
  EXPECT_FALSE(Run(overwriting, [](const ConvertProgress&) { return false; }));
  EXPECT_EQ(support::ReadFile(output_), "precious");
  EXPECT_EQ(Run({}).error().remedy().kind, RemedyKind::kOverwrite);
  EXPECT_EQ(support::ReadFile(output_), "precious");
  EXPECT_TRUE(Run(overwriting));
  EXPECT_EQ(support::ReadFile(output_).substr(0, 8), "CRIAMODL");
  EXPECT_EQ(support::FileNames(folder_.path()),
            (std::vector<std::string>{"checkpoint", "model.cria"}));
}

TEST_F(ConvertTest, ASymbolicLinkKeepsPointingToTheModel) {
  Make(support::SpecMha());
  const auto link = folder_.path() / "link.cria";
  support::WriteFile(output_, "");
  std::filesystem::create_symlink("model.cria", link);
  ASSERT_TRUE(Convert(checkpoint_, link, {}));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(support::ReadFile(output_).substr(0, 8), "CRIAMODL");
}

TEST_F(ConvertTest, WeightsThatAreNotFiniteAreNamed) {
  const CheckpointSpec spec = support::SpecMha();
  reference::ReferenceModel model = support::MakeModel(spec);
  model.tensors.at("model.layers.1.mlp.up_proj.weight").values[64 + 5] = NAN;
  support::WriteHuggingFaceDirectory(model, checkpoint_, spec.format);
  const auto report = Run({});
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message(), HasSubstr("\"model.layers.1.mlp.up_proj.weight\""));
  EXPECT_THAT(report.error().message(), HasSubstr("at [1, 5]"));
  ExpectNothingWritten();
}

TEST_F(ConvertTest, RefusesOutputsThatCannotBe) {
  Make(support::SpecMha());
  const auto refuse = [&](const std::filesystem::path& output, std::string_view reason) {
    const auto report = Convert(checkpoint_, output, {});
    ASSERT_FALSE(report) << output;
    EXPECT_THAT(report.error().message(), HasSubstr(reason));
    EXPECT_EQ(report.error().code(), output.empty() ? ErrorCode::kUsage : ErrorCode::kIo);
  };
  refuse("/dev/null", "is not a regular file");
  refuse(checkpoint_, "is not a regular file");
  refuse(folder_.path() / "absent" / "model.cria",
         "cannot write: No such file or directory; make its folder first");
  refuse("", "is not the name of a file");
  if (geteuid() != 0) {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0500));
    refuse(output_, "cannot write: Permission denied; choose an output in a folder");
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0700));
  }
  ExpectNothingWritten();
}

TEST_F(ConvertTest, AFullDiskIsOneSentence) {
  Make(support::SpecMha());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 20000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto report = Run({});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::kIo);
  EXPECT_THAT(report.error().message(), HasSubstr("there is no room for its"));
  ExpectNothingWritten();
}

TEST_F(ConvertTest, RefusesOptionsThatCannotBe) {
  Make(support::SpecMha());
  for (const size_t block_size : {0, 16, 33, 512}) {
    const auto report = Run({.block_size = block_size});
    ASSERT_FALSE(report) << block_size;
    EXPECT_EQ(report.error().code(), ErrorCode::kUsage);
  }
  ExpectNothingWritten();
}

TEST_F(ConvertTest, RefusesOtherArchitectures) {
  nlohmann::json config = support::TinyConfig();
  config["architectures"] = {"MambaForCausalLM"};
  std::filesystem::create_directory(checkpoint_);
  support::WriteTinyCheckpoint(checkpoint_, config, support::TinyTensors(true));
  const auto report = Run({});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(report.error().message(), HasSubstr("MambaForCausalLM"));
  ExpectNothingWritten();
}

TEST_F(ConvertTest, AMissingTokenizerIsAnError) {
  CheckpointSpec spec = support::SpecMha();
  spec.format.tokenizer = support::TokenizerFiles::kNone;
  Make(spec);
  EXPECT_FALSE(Run({}));
  ExpectNothingWritten();
}

TEST_F(ConvertTest, AVocabularyAloneNeedsNoWeightsAndHasNone) {
  Make(support::SpecGqa());
  ASSERT_TRUE(Run({}));
  const auto whole = ModelFile::Open(output_.string());
  ASSERT_TRUE(whole);
  std::filesystem::remove(checkpoint_ / "model.safetensors");
  const auto report = ConvertVocabulary(checkpoint_, output_);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->num_tokens, 300u);
  EXPECT_LT(std::filesystem::file_size(output_), 64u << 10);

  const auto refused = ModelFile::Open(output_.string());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message(), HasSubstr("only a tokenizer"));

  const auto vocabulary = ModelFile::OpenVocabulary(output_.string());
  ASSERT_TRUE(vocabulary) << vocabulary.error().message();
  EXPECT_TRUE(vocabulary->is_vocabulary_only());
  EXPECT_TRUE(vocabulary->tensors().empty());
  EXPECT_EQ(vocabulary->name(), "checkpoint");
  const Vocabulary& left = vocabulary->vocabulary();
  const Vocabulary& right = whole->vocabulary();
  EXPECT_TRUE(std::ranges::equal(left.piece_bytes, right.piece_bytes));
  EXPECT_TRUE(std::ranges::equal(left.merge_offsets, right.merge_offsets));
  EXPECT_EQ(left.bos_token_id, right.bos_token_id);
  EXPECT_TRUE(std::ranges::equal(vocabulary->stop_token_ids(), whole->stop_token_ids()));
}

// Every shape of a layout decides bytes.
void ExpectSameLayout(const TensorLayout& a, const TensorLayout& b) {
  EXPECT_EQ(a.scheme, b.scheme);
  EXPECT_EQ(a.data_bytes(), b.data_bytes());
  EXPECT_EQ(a.scale_bytes(), b.scale_bytes());
}

TEST_F(ConvertTest, TheOutlineOfAConfigurationDiffersOnlyInTheTokenizer) {
  const std::filesystem::path alone = folder_.path() / "alone" / "checkpoint";
  std::filesystem::create_directories(alone);
  for (const support::NamedSpec& spec : support::TinySpecs()) {
    std::filesystem::remove_all(checkpoint_);
    Make(spec.make());
    std::filesystem::copy_file(checkpoint_ / "config.json", alone / "config.json",
                               std::filesystem::copy_options::overwrite_existing);
    const ConvertOptions all_options[] = {
        {},
        {.weights = Scheme::kQc8w},
        {.weights = Scheme::kF32},
        {.block_size = 64, .embedding = Scheme::kQb4w, .head = Scheme::kF32}};
    for (const ConvertOptions& options : all_options) {
      const auto full = OutlineConversion(checkpoint_, options);
      ASSERT_TRUE(full) << spec.name << ": " << full.error().message();
      const auto outline = OutlineConversion(alone, options);
      ASSERT_TRUE(outline) << spec.name << ": " << outline.error().message();
      EXPECT_FALSE(full->tokenizer_is_estimated);
      EXPECT_TRUE(outline->tokenizer_is_estimated);
      ExpectSameLayout(full->embedding, outline->embedding);
      ASSERT_EQ(full->matrices.size(), outline->matrices.size()) << spec.name;
      for (size_t i = 0; i < full->matrices.size(); ++i) {
        ExpectSameLayout(full->matrices[i], outline->matrices[i]);
      }
      EXPECT_EQ(full->config.num_hidden_layers, outline->config.num_hidden_layers);
      // The file differs by as much as the metadata, but for the alignment after it.
      const auto difference = [](uint64_t a, uint64_t b) {
        return static_cast<int64_t>(a) - static_cast<int64_t>(b);
      };
      EXPECT_NEAR(static_cast<double>(difference(full->file_bytes, outline->file_bytes)),
                  static_cast<double>(difference(full->metadata_bytes, outline->metadata_bytes)),
                  kSectionAlignment)
          << spec.name;
      // The whole checkpoint's folder gives the same without its weights and tokenizer.
      EXPECT_EQ(OutlineConfiguration(checkpoint_, options)->file_bytes, outline->file_bytes);
    }
  }
}

TEST_F(ConvertTest, TheOutlineOfAConfigurationRefusesWhatConvertingRefuses) {
  std::filesystem::create_directories(checkpoint_);
  support::WriteFile(checkpoint_ / "config.json", R"({"architectures": ["GPT2LMHeadModel"]})");
  EXPECT_FALSE(OutlineConversion(checkpoint_, {}));
  EXPECT_FALSE(OutlineConversion(checkpoint_, {.block_size = 7}));
  EXPECT_FALSE(OutlineConversion(folder_.path() / "nothing", {}));
}

}  // namespace
}  // namespace cria
