// The table of short names, and how a checkpoint is identified.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "cli/models/known_models.h"
#include "cli/models/model_source.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria::cli {
namespace {

TEST(KnownModelsTest, EachLineIsAboutACheckpointOnTheHub) {
  std::set<std::string_view> names;
  uint64_t last_bytes = 0;
  for (const KnownModel& model : KnownModels()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_EQ(FindKnownModel(model.name), &model);
    const std::optional<ModelSource> source = FindCheckpoint(std::string(model.source));
    ASSERT_TRUE(source) << model.source;
    EXPECT_TRUE(source->is_on_hub());
    EXPECT_FALSE(model.licence.empty());
    EXPECT_GE(model.download_bytes, last_bytes) << model.name << " is not sorted by size";
    last_bytes = model.download_bytes;
    EXPECT_GT(model.download_bytes, 2 * model.file_bytes) << model.name;
    EXPECT_LT(model.peak_bytes, 2 * model.file_bytes) << model.name;
    EXPECT_FALSE(SmallestBoard(model).empty()) << model.name;
  }
  EXPECT_GE(names.size(), 12u);
  EXPECT_EQ(FindKnownModel("no-model"), nullptr);
}

TEST(KnownModelsTest, TheSmallestBoardHasTheMemory) {
  EXPECT_EQ(SmallestBoard({.peak_bytes = 129'000'000}), "pi-zero-2w");
  EXPECT_EQ(SmallestBoard({.peak_bytes = 877'000'000}), "pi-4-2gb");
  EXPECT_EQ(SmallestBoard({.peak_bytes = 1'000'000'000'000}), "");
}

TEST(ModelSourceTest, IdsTellSourcesApart) {
  const support::TemporaryDirectory folder;
  const std::string path = folder / "a.gguf";
  support::WriteFile(path, "GGUF and more");
  const std::string id = FindCheckpoint(path)->Id();
  EXPECT_EQ(FindCheckpoint(path)->Id(), id);
  support::WriteFile(path, "GGUF and even more");
  EXPECT_NE(FindCheckpoint(path)->Id(), id);
  EXPECT_EQ(FindCheckpoint("hf:a/b:c.gguf")->Id(), FindCheckpoint("hf:a/b/c.gguf")->Id());
  EXPECT_NE(FindCheckpoint("hf:a/b")->Id(), FindCheckpoint("hf:a/c")->Id());
  EXPECT_FALSE(FindCheckpoint(folder / "missing"));
  support::WriteFile(folder / "text", "text");
  EXPECT_FALSE(FindCheckpoint(folder / "text"));
}

}  // namespace
}  // namespace cria::cli
