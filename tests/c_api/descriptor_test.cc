// Models behind a file descriptor: whole files, and parts of larger ones.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "c_api/c_api_fixture.h"
#include "c_api/fixture_models.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria_test {
namespace {

using cria::support::ReadFile;
using testing::HasSubstr;

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path, int flags = O_RDONLY)
      : number_(open(path.c_str(), flags | O_CLOEXEC)) {
    EXPECT_GE(number_, 0) << path;
  }
  ~Descriptor() { close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

class DescriptorTest : public testing::Test {
 protected:
  // A file of `lead_bytes` of something else, then the model, then something else.
  std::filesystem::path Embed(const std::string& model_path, size_t lead_bytes) {
    const std::filesystem::path path = directory_ / "package";
    const std::string model = ReadFile(model_path);
    model_bytes_ = model.size();
    cria::support::WriteFile(path, std::string(lead_bytes, '\xaa') + model + "and the rest");
    return path;
  }

  cria_model_options Options(const Descriptor& descriptor, uint64_t offset_bytes = 0,
                             uint64_t length_bytes = 0) {
    cria_model_options options = CRIA_MODEL_OPTIONS_INIT;
    options.descriptor = descriptor.number();
    options.offset_bytes = offset_bytes;
    options.length_bytes = length_bytes;
    options.num_threads = 1;
    options.pack_folder = packs_.c_str();
    return options;
  }

  void ExpectAnswers(const cria_model_options& options) {
    const ModelPtr model = LoadModel(options);
    ASSERT_NE(model, nullptr);
    const Answer answer = Send(MakeChat(model), "Hello! Who are you?");
    EXPECT_THAT(answer.text, HasSubstr("I am Cria, a baby llama"));
    cria_model_info info = CRIA_MODEL_INFO_INIT;
    cria_model_get_info(model.get(), &info);
    EXPECT_EQ(info.file_bytes, model_bytes_);
  }

  void ExpectRefused(const cria_model_options& options, cria_status status,
                     std::string_view words) {
    cria_model* model = nullptr;
    ExpectFailure(cria_model_load(&options, &model), status, words);
    EXPECT_EQ(model, nullptr);
  }

  cria::support::TemporaryDirectory directory_;
  const std::string packs_ = (directory_ / "packs").string();
  uint64_t model_bytes_ = ReadFile(kDemoModel).size();
};

TEST_F(DescriptorTest, AWholeFile) {
  const Descriptor descriptor(kDemoModel);
  ExpectAnswers(Options(descriptor));
  ExpectAnswers(Options(descriptor, 0, model_bytes_));
}

TEST_F(DescriptorTest, APartOfAFileAtAnyOffset) {
  for (const size_t offset : {size_t{1}, size_t{4}, size_t{64}, size_t{4096}, size_t{5000}}) {
    SCOPED_TRACE(offset);
    const Descriptor descriptor(Embed(kDemoModel, offset));
    ExpectAnswers(Options(descriptor, offset, model_bytes_));
  }
}

TEST_F(DescriptorTest, AModelPackedForThisProcessorInAPart) {
  const Descriptor aligned(Embed(kStandaloneModel, 4096 + 64));
  ExpectAnswers(Options(aligned, 4096 + 64, model_bytes_));
  const Descriptor odd(Embed(kStandaloneModel, 4));
  ExpectRefused(Options(odd, 4, model_bytes_), CRIA_ERROR_UNSUPPORTED, "multiple of 64");
}

TEST_F(DescriptorTest, PackedWeightsAreFoundAgain) {
  {
    const Descriptor descriptor(Embed(kDemoModel, 4096));
    ExpectAnswers(Options(descriptor, 4096, model_bytes_));
  }
  // Another number, another place, the same model.
  const Descriptor unused("/dev/null");
  const Descriptor descriptor(kDemoModel);
  cria_model_options options = Options(descriptor);
  options.packing = CRIA_PACK_NEVER;
  ExpectAnswers(options);
}

TEST_F(DescriptorTest, TheCallersDescriptorStaysTheCallers) {
  ModelPtr model;
  {
    const Descriptor descriptor(kDemoModel);
    ASSERT_EQ(lseek(descriptor.number(), 123, SEEK_SET), 123);
    model = LoadModel(Options(descriptor));
    EXPECT_EQ(lseek(descriptor.number(), 0, SEEK_CUR), 123);
  }
  // Its number now belongs to something else.
  const Descriptor other("/dev/null");
  EXPECT_THAT(Send(MakeChat(model), "Hello! Who are you?").text, HasSubstr("Cria"));
  model.reset();
  EXPECT_NE(fcntl(other.number(), F_GETFD), -1);
}

TEST_F(DescriptorTest, MetadataAtAnOddOffsetIsPlannedAsPrivate) {
  const auto private_bytes = [&](size_t offset) {
    const Descriptor descriptor(Embed(kDemoModel, offset));
    const cria_model_options options = Options(descriptor, offset, model_bytes_);
    cria_plan* plan = nullptr;
    EXPECT_EQ(cria_plan_create(&options, &plan), CRIA_OK) << cria_error_message();
    uint64_t bytes = 0;
    int is_mapped = 0;
    std::string kinds;
    for (size_t i = 0; i < cria_plan_num_parts(plan); ++i) {
      const std::string name = cria_plan_get_part(plan, i, &bytes, &is_mapped);
      if (name == "tokenizer and metadata") kinds += is_mapped ? "mapped" : "private";
    }
    cria_plan_free(plan);
    return kinds;
  };
  EXPECT_EQ(private_bytes(64), "mapped");
  EXPECT_EQ(private_bytes(4), "private");
}

TEST_F(DescriptorTest, WhatIsNoModelIsRefused) {
  const Descriptor package(Embed(kDemoModel, 100));
  const uint64_t file_bytes = 100 + model_bytes_ + 12;
  ExpectRefused(Options(package, 99, model_bytes_), CRIA_ERROR_INVALID_FILE, "not a Cria model");
  ExpectRefused(Options(package, 100, model_bytes_ - 1), CRIA_ERROR_INVALID_FILE, "bytes long");
  ExpectRefused(Options(package, 100, 0), CRIA_ERROR_INVALID_FILE, "bytes long");
  ExpectRefused(Options(package, 100, 10), CRIA_ERROR_INVALID_FILE, "too short");
  ExpectRefused(Options(package, 200, file_bytes), CRIA_ERROR_INVALID_FILE, "outside");
  ExpectRefused(Options(package, file_bytes, 0), CRIA_ERROR_INVALID_FILE, "too short");
  ExpectRefused(Options(package, file_bytes + 1, 0), CRIA_ERROR_INVALID_FILE, "outside");
  ExpectRefused(Options(package, UINT64_MAX, 1), CRIA_ERROR_INVALID_FILE, "outside");
  ExpectRefused(Options(package, 100, UINT64_MAX), CRIA_ERROR_INVALID_FILE, "outside");
}

TEST_F(DescriptorTest, WhatIsNoFileIsRefused) {
  const Descriptor directory(directory_.path(), O_RDONLY | O_DIRECTORY);
  ExpectRefused(Options(directory), CRIA_ERROR_IO, "regular file");
  const Descriptor device("/dev/null");
  ExpectRefused(Options(device), CRIA_ERROR_IO, "regular file");
  const Descriptor write_only(Embed(kDemoModel, 0), O_WRONLY);
  ExpectRefused(Options(write_only), CRIA_ERROR_IO, "cannot read");
  cria_model_options closed = Options(device);
  closed.descriptor = 1 << 20;
  ExpectRefused(closed, CRIA_ERROR_IO, "descriptor");
}

}  // namespace
}  // namespace cria_test
