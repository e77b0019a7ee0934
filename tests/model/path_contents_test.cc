#include "model/path_contents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include "model/model_file.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A zip archive's first member, as PyTorch writes it.
const std::string kTorchFile = "PK\x03\x04" + std::string(22, '\0') + std::string("\x10\0\0\0", 4) +
                               "archive/data.pkl" + std::string(64, '\0');

std::string SafetensorsFile() {
  const std::string header = R"({"a":{}})";
  const uint64_t bytes = header.size();
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + header;
}

std::string Llama2cFile(int32_t vocab_size = -512) {
  const std::array<int32_t, 7> sizes = {64, 172, 5, 8, 4, vocab_size, 512};
  return std::string(reinterpret_cast<const char*>(sizes.data()), sizeof sizes) +
         std::string(100, '\0');
}

class PathContentsTest : public testing::Test {
 protected:
  // Writes a file with this name and returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = directory_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    support::WriteFile(path, bytes);
    return path;
  }
  ContentKind KindOf(const std::string& bytes) const {
    return InspectPath(Write("any/name", bytes)).kind;
  }
  std::string Path(const std::string& name) const { return directory_.path() / name; }

  support::TemporaryDirectory directory_;
};

TEST_F(PathContentsTest, FilesAreRecognizedByTheirFirstBytes) {
  EXPECT_EQ(KindOf("GGUF\x03"), ContentKind::kGguf);
  EXPECT_EQ(KindOf("CRIAMODL..."), ContentKind::kModel);
  EXPECT_EQ(KindOf("CRIAPACK..."), ContentKind::kPackedWeights);
  EXPECT_EQ(KindOf(SafetensorsFile()), ContentKind::kSafetensors);
  EXPECT_EQ(KindOf(kTorchFile), ContentKind::kTorch);
  EXPECT_EQ(KindOf("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."),
            ContentKind::kTorch);
  EXPECT_EQ(KindOf("24ka"), ContentKind::kLlama2c);
  EXPECT_EQ(KindOf(Llama2cFile()), ContentKind::kLlama2c);
  EXPECT_EQ(KindOf(Llama2cFile(512)), ContentKind::kLlama2c);
}

TEST_F(PathContentsTest, OtherFilesAreUnknown) {
  for (const std::string& bytes :
       {std::string(), std::string("GGU"), std::string("hello, world"), std::string(200, '\0'),
        std::string(200, '\xff'), Llama2cFile(0), std::string("PK\x03\x04") + std::string(80, 'x'),
        // The header of safetensors would be longer than the file.
        std::string("\x40\0\0\0\0\0\0\0{}", 10)}) {
    EXPECT_EQ(KindOf(bytes), ContentKind::kUnknown) << bytes;
  }
  EXPECT_EQ(InspectPath(Path("absent")).kind, ContentKind::kUnknown);
  EXPECT_EQ(ContentsText(InspectPath(Path("absent"))), "");
}

TEST_F(PathContentsTest, ANameOnAHubIsNoPath) {
  const PathContents contents = InspectPath("hf:tiny-org/tiny-llama@main");
  EXPECT_EQ(contents.kind, ContentKind::kHubName);
  EXPECT_EQ(contents.checkpoint, "hf:tiny-org/tiny-llama@main");
  EXPECT_EQ(InspectPath("hf:").kind, ContentKind::kUnknown);
  const auto opened = OpenModelPath("hf:tiny-org/tiny-llama");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().remedy().kind, RemedyKind::kConvertCheckpoint);
  EXPECT_THAT(opened.error().message(), HasSubstr("is the name of a checkpoint on a hub"));
}

TEST_F(PathContentsTest, FoldersAreRecognizedByTheirFiles) {
  std::filesystem::create_directory(Path("empty"));
  EXPECT_EQ(InspectPath(Path("empty")).kind, ContentKind::kEmptyFolder);
  Write("other/readme", "x");
  EXPECT_EQ(InspectPath(Path("other")).kind, ContentKind::kOtherFolder);
  Write("meta/params.json", "{}");
  EXPECT_EQ(InspectPath(Path("meta")).kind, ContentKind::kMetaFolder);
  Write("hf/config.json", "{}");
  EXPECT_EQ(InspectPath(Path("hf")).kind, ContentKind::kHuggingFaceFolder);
  // Some folders have both files; the checkpoint is then Hugging Face's.
  Write("hf/params.json", "{}");
  EXPECT_EQ(InspectPath(Path("hf")).kind, ContentKind::kHuggingFaceFolder);
  EXPECT_EQ(InspectPath(Path("hf")).checkpoint, Path("hf"));
  Write("hf/pytorch_model.bin", kTorchFile);
  EXPECT_EQ(InspectPath(Path("hf")).kind, ContentKind::kHuggingFaceFolder);
}

TEST_F(PathContentsTest, AConfigurationAloneIsNotToBeConverted) {
  Write("hf/config.json", "{}");
  const auto sentence = [&] {
    const auto opened = OpenModelPath(Path("hf"));
    return opened ? "" : opened.error().message();
  };
  EXPECT_THAT(sentence(), HasSubstr("its weights are missing: model.safetensors"));
  const std::string gguf = Write("hf/a.gguf", "GGUF");
  EXPECT_THAT(sentence(), HasSubstr("is a folder with the GGUF file a.gguf"));
  EXPECT_EQ(OpenModelPath(Path("hf")).error().remedy().checkpoint, gguf);
  Write("hf/model.safetensors", SafetensorsFile());
  EXPECT_EQ(OpenModelPath(Path("hf")).error().remedy().checkpoint, Path("hf"));
}

TEST_F(PathContentsTest, WeightsBelongToTheCheckpointInTheirFolder) {
  const std::string weights = Write("hf/model.safetensors", SafetensorsFile());
  EXPECT_EQ(InspectPath(weights).checkpoint, "");
  EXPECT_THAT(std::string(HowToGetCheckpoint(InspectPath(weights))), HasSubstr("config.json"));
  Write("hf/config.json", "{}");
  EXPECT_EQ(InspectPath(weights).checkpoint, Path("hf"));
  const std::string torch = Write("torch/pytorch_model.bin", kTorchFile);
  EXPECT_EQ(InspectPath(torch).checkpoint, "");
  EXPECT_THAT(std::string(HowToGetCheckpoint(InspectPath(torch))), HasSubstr("config.json"));
  Write("torch/config.json", "{}");
  EXPECT_EQ(InspectPath(torch).checkpoint, Path("torch"));
  const std::string part = Write("meta/consolidated.00.pth", kTorchFile);
  Write("meta/params.json", "{}");
  EXPECT_EQ(InspectPath(part).checkpoint, Path("meta"));
}

TEST_F(PathContentsTest, OfSeveralGgufFilesTheLargestIsSuggested) {
  Write("folder/b.gguf", "GGUF");
  Write("folder/a.gguf", "GGUF...");
  Write("folder/c-00001-of-00002.gguf", "GGUF");
  Write("folder/c-00002-of-00002.gguf", "GGUF.......");
  Write("folder/notes.gguf", "something else");
  const PathContents contents = InspectPath(Path("folder"));
  EXPECT_EQ(contents.kind, ContentKind::kGgufFolder);
  EXPECT_THAT(contents.names, ElementsAre("a.gguf", "b.gguf", "c-00001-of-00002.gguf"));
  EXPECT_EQ(contents.checkpoint, Path("folder/a.gguf"));
  EXPECT_EQ(ContentsText(contents),
            "is a folder with the GGUF files a.gguf, b.gguf and c-00001-of-00002.gguf");
}

// The sentence of every function that opens a model by its path.
TEST_F(PathContentsTest, AWrongPathIsNamedInOneSentence) {
  const auto error_of = [](const std::string& path) {
    const auto opened = ModelFile::Open(path);
    EXPECT_FALSE(opened);
    EXPECT_EQ(ModelFile::OpenVocabulary(path).error().message(), opened.error().message());
    return opened.error();
  };
  const Error gguf = error_of(Write("x.gguf", "GGUF"));
  EXPECT_EQ(gguf.message(), Path("x.gguf") + ": is a GGUF file and not a Cria model file");
  EXPECT_EQ(gguf.remedy().kind, RemedyKind::kConvertCheckpoint);
  EXPECT_EQ(gguf.remedy().checkpoint, Path("x.gguf"));
  Write("meta/params.json", "{}");
  EXPECT_EQ(error_of(Path("meta")).remedy().checkpoint, Path("meta"));
  Write("torch/config.json", "{}");
  Write("torch/pytorch_model.bin", kTorchFile);
  EXPECT_EQ(error_of(Path("torch/pytorch_model.bin")).remedy().checkpoint, Path("torch"));
  Write("models/a.cria", "CRIAMODL");
  EXPECT_EQ(error_of(Path("models")).message(),
            Path("models") + ": is a folder with the model file a.cria; give that file");
  EXPECT_THAT(error_of(Write("x.packed", "CRIAPACK")).message(),
              HasSubstr("has packed weights, which belong to a Cria model file"));
  // What is not recognized has the reader's own sentence.
  EXPECT_THAT(error_of(Write("x.txt", std::string(100, 'x'))).message(),
              HasSubstr("is not a Cria model file"));
  EXPECT_THAT(error_of(Path("absent")).message(), HasSubstr("cannot open"));
}

TEST_F(PathContentsTest, OnlyCriasFilesAndEmptyOnesAreReplaceable) {
  EXPECT_TRUE(CheckReplaceable(Path("absent")));
  EXPECT_TRUE(CheckReplaceable(Write("empty", "")));
  EXPECT_TRUE(CheckReplaceable(Write("model", "CRIAMODL")));
  EXPECT_TRUE(CheckReplaceable(Write("packed", "CRIAPACK")));
  // Not a regular file: writing fails with its own sentence.
  EXPECT_TRUE(CheckReplaceable(Path("")));
  const auto text = CheckReplaceable(Write("diary", "Dear diary"));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message(),
            Path("diary") + ": is a file that Cria did not write, which would be replaced");
  EXPECT_EQ(text.error().remedy().kind, RemedyKind::kOverwrite);
  EXPECT_THAT(CheckReplaceable(Write("x.gguf", "GGUF")).error().message(),
              HasSubstr("is a GGUF file, which would be replaced"));
  std::filesystem::create_symlink(Path("diary"), Path("link"));
  EXPECT_FALSE(CheckReplaceable(Path("link")));
}

}  // namespace
}  // namespace cria
