#include "converter/llama2c/llama2c_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "converter/convert.h"
#include "model/model_file.h"
#include "support/files.h"
#include "support/llama2c_writer.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "text/tokenizer.h"

namespace cria {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Llama2cCheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_);
    support::WriteLlama2cTokenizer(folder_ / "tokenizer.bin");
  }
  void ExpectRefused(const std::filesystem::path& path, std::string_view reason) {
    const auto report = Convert(path, output_, {});
    ASSERT_FALSE(report) << reason;
    EXPECT_THAT(report.error().message(), HasSubstr(reason));
  }

  support::TemporaryDirectory directory_;
  std::filesystem::path folder_ = directory_.path() / "llama2c";
  std::filesystem::path path_ = folder_ / "model.bin";
  std::filesystem::path output_ = directory_.path() / "out.cria";
};

// The tensors' checksums are those of the same model in Hugging Face's layout.
TEST_F(Llama2cCheckpointTest, WeightsAreThoseOfHuggingFacesFiles) {
  for (const auto& spec : {support::SpecGqa(), support::SpecTied()}) {
    const reference::ReferenceModel model = support::MakeModel(spec);
    const auto hugging_face = directory_.path() / "hf";
    support::WriteHuggingFaceDirectory(model, hugging_face, spec.format);
    ASSERT_TRUE(Convert(hugging_face, output_, {.weights = Scheme::kF32}));
    const auto expected = ModelFile::Open(output_.string());
    ASSERT_TRUE(expected);
    for (const int version : {0, 1}) {
      support::WriteLlama2c(model, version, path_);
      const auto report = Convert(path_, output_, {.weights = Scheme::kF32});
      ASSERT_TRUE(report) << report.error().message();
      const auto converted = ModelFile::Open(output_.string());
      ASSERT_TRUE(converted) << converted.error().message();
      EXPECT_EQ(converted->name(), "model");
      EXPECT_EQ(converted->config().tie_word_embeddings, spec.config.tie_word_embeddings);
      EXPECT_EQ(converted->config().max_position_embeddings, 128u);
      ASSERT_EQ(converted->tensors().size(), expected->tensors().size());
      for (size_t i = 0; i < expected->tensors().size(); ++i) {
        EXPECT_EQ(converted->tensors()[i].checksum, expected->tensors()[i].checksum)
            << expected->tensors()[i].spec.Name() << " of version " << version;
      }
      EXPECT_THAT(converted->stop_token_ids(), ElementsAre(2));
      const auto tokenizer = Tokenizer::Create(converted->vocabulary());
      // " the", a byte.
      EXPECT_THAT(tokenizer->Encode("the!").value(), ElementsAre(1, 261, 3 + '!'));
    }
  }
}

TEST_F(Llama2cCheckpointTest, RefusesFilesOfAnotherSize) {
  support::WriteLlama2c(support::MakeModel(support::SpecGqa()), 0, path_);
  const std::string whole = support::ReadFile(path_);
  for (const size_t bytes : {size_t{28}, size_t{100}, whole.size() - 4}) {
    support::WriteFile(path_, whole.substr(0, bytes));
    ExpectRefused(path_, "but its header calls for");
  }
  support::WriteFile(path_, whole + "1234");
  ExpectRefused(path_, "but its header calls for");
  support::WriteFile(path_, whole.substr(0, 27));
  ExpectRefused(path_, "neither a GGUF file nor a llama2.c model");
}

TEST_F(Llama2cCheckpointTest, RefusesSizesThatDoNotFit) {
  support::WriteLlama2c(support::MakeModel(support::SpecGqa()), 1, path_);
  const std::string whole = support::ReadFile(path_);
  const auto with = [&](size_t field, int32_t value) {
    std::string bytes = whole;
    std::memcpy(bytes.data() + 4 * field, &value, sizeof value);
    support::WriteFile(path_, bytes);
    return path_;
  };
  ExpectRefused(with(1, 2), "is version 2 of llama2.c's format");
  ExpectRefused(with(2, 0x7fffffff), "heads");
  ExpectRefused(with(3, -1), "intermediate_size is 4294967295");
  ExpectRefused(with(5, 0), "0 heads");
  ExpectRefused(with(6, 3), "num_key_value_heads");
  ExpectRefused(with(4, 1000), "but its header calls for");
}

TEST_F(Llama2cCheckpointTest, RefusesTokenizersThatDoNotFit) {
  support::WriteLlama2c(support::MakeModel(support::SpecGqa()), 1, path_);
  const auto tokenizer = folder_ / "tokenizer.bin";
  const std::string whole = support::ReadFile(tokenizer);
  support::WriteFile(tokenizer, whole.substr(0, 60));
  ExpectRefused(path_, "tokenizer.bin: a token at byte");
  support::WriteFile(tokenizer, whole.substr(0, 4));
  ExpectRefused(path_, "fewer than three tokens");
  const std::string more = whole + whole.substr(4);
  support::WriteFile(tokenizer, more);
  ExpectRefused(path_, "but the checkpoint's vocab_size is 300");
  std::string huge = whole;
  huge.replace(8, 4, "\xff\xff\xff\x7f");
  support::WriteFile(tokenizer, huge);
  ExpectRefused(path_, "takes 2147483647 bytes");
  for (const char* const name : {"tokenizer.model", "tokenizer.json"}) {
    std::filesystem::create_symlink("gone", folder_ / name);
    ExpectRefused(path_, std::string(name) + ": is a link to \"gone\"");
    std::filesystem::remove(folder_ / name);
  }
  std::filesystem::remove(tokenizer);
  ExpectRefused(path_, "there is no tokenizer in its folder");
  std::filesystem::create_symlink("gone", tokenizer);
  ExpectRefused(path_, "tokenizer.bin: is a link to \"gone\"");
}

}  // namespace
}  // namespace cria
