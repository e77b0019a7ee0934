#include "xnn/pack_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "support/emulation.h"
#include "support/sanitizers.h"
#include "xnn/packed_file_writer.h"
#include "xnn/packed_model.h"

namespace cria::xnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class PackCacheTest : public testing::Test {
 protected:
  PackCacheTest() : cache_(converted_.folder() / "some" / "cache") {
    expected_ = Logits(model_, Unwrap(PackedWeights::PackInMemory(model_, pool_, nullptr)));
  }

  // Loads, and records the notices.
  Result<PackedWeights> Load(PackingOptions options) {
    notices_.clear();
    options.on_notice = [this](std::string_view notice) { notices_.emplace_back(notice); };
    return LoadPackedWeights(model_, options, pool_);
  }
  Result<PackedWeights> Load() { return Load({.cache_folder = cache_.folder()}); }

  // Where the cache's file is of no use: it says so, with these words, packs and maps again.
  void ExpectRepacked(const std::string& words) {
    const auto weights = Load();
    ASSERT_TRUE(weights) << weights.error().message();
    EXPECT_TRUE(weights->is_mapped());
    EXPECT_THAT(notices_, ElementsAre(HasSubstr(words), HasSubstr("packing the weights")));
  }

  // Where the cache is of no use at all: it says so last, and packs into memory.
  void ExpectInMemory(const std::string& folder, const std::string& words) {
    const auto weights = Load({.cache_folder = folder});
    ASSERT_TRUE(weights) << weights.error().message();
    EXPECT_FALSE(weights->is_mapped());
    ASSERT_THAT(notices_, testing::Not(IsEmpty()));
    EXPECT_THAT(notices_.back(),
                testing::AllOf(HasSubstr(words), HasSubstr("packing into memory instead")));
    EXPECT_TRUE(SameBits(Logits(model_, *weights), expected_));
  }

  ConvertedModel converted_;
  ModelFile model_ = converted_.Open();
  ThreadPool pool_ = Unwrap(ThreadPool::Create(2));
  PackCache cache_;
  std::vector<float> expected_;
  std::vector<std::string> notices_;
};

TEST_F(PackCacheTest, AMissPacksAndAHitMapsTheSameWeights) {
  const auto packed = Load();
  ASSERT_TRUE(packed) << packed.error().message();
  EXPECT_TRUE(packed->is_mapped());
  const std::string path = cache_.PathFor(model_);
  EXPECT_THAT(notices_, ElementsAre(testing::AllOf(HasSubstr("packing the weights"),
                                                   HasSubstr(path), HasSubstr(" kB)"))));
  EXPECT_TRUE(SameBits(Logits(model_, *packed), expected_));
  const auto written = std::filesystem::last_write_time(path);
  for (int i = 0; i < 2; ++i) {
    const auto mapped = Load();
    ASSERT_TRUE(mapped);
    EXPECT_TRUE(mapped->is_mapped());
    EXPECT_THAT(notices_, IsEmpty());
    EXPECT_TRUE(SameBits(Logits(model_, *mapped), expected_));
  }
  EXPECT_EQ(std::filesystem::last_write_time(path), written);
  EXPECT_THAT(support::FileNames(cache_.folder()), SizeIs(1));
}

TEST_F(PackCacheTest, WithoutAFolderNothingIsWrittenOrSaid) {
  const auto names = support::FileNames(converted_.folder());
  const auto weights = Load(PackingOptions());
  ASSERT_TRUE(weights);
  EXPECT_FALSE(weights->is_mapped());
  EXPECT_THAT(notices_, IsEmpty());
  EXPECT_TRUE(SameBits(Logits(model_, *weights), expected_));
  EXPECT_EQ(support::FileNames(converted_.folder()), names);
}

TEST_F(PackCacheTest, ModelsOfOneNameHaveFilesOfTheirOwn) {
  support::CheckpointSpec spec = support::SpecGqa();
  spec.seed = 2;
  const ConvertedModel other(spec);
  EXPECT_NE(cache_.PathFor(other.Open()), cache_.PathFor(model_));
  // The same model with another name has the same file.
  const std::string copy = converted_.folder() / "copy.cria";
  std::filesystem::copy_file(converted_.path(), copy);
  EXPECT_EQ(cache_.PathFor(Unwrap(ModelFile::Open(copy))), cache_.PathFor(model_));
}

TEST_F(PackCacheTest, FilesOfOlderVersionsAreRenamedAndServe) {
  ASSERT_TRUE(Load());
  const std::string path = cache_.PathFor(model_);
  const auto older = [&](const std::string& stem) {
    return std::filesystem::path(cache_.folder()) /
           (stem + "-" + DigestText(model_.digest()).substr(0, 16) + ".packed");
  };
  std::filesystem::copy_file(path, older("copy"));
  std::filesystem::rename(path, older("model"));
  support::WriteFile(std::filesystem::path(cache_.folder()) / "x-0123456789abcdef.packed", "other");
  const auto weights = Load();
  ASSERT_TRUE(weights);
  EXPECT_TRUE(weights->is_mapped());
  EXPECT_THAT(notices_, IsEmpty());
  EXPECT_THAT(
      support::FileNames(cache_.folder()),
      ElementsAre(std::filesystem::path(path).filename().string(), "x-0123456789abcdef.packed"));
  EXPECT_TRUE(SameBits(Logits(model_, *weights), expected_));
  // Where a file has the new name, older ones stay for List and Remove.
  support::WriteFile(older("model"), "old");
  ASSERT_TRUE(Load());
  EXPECT_TRUE(std::filesystem::exists(older("model")));
}

TEST_F(PackCacheTest, OneEntryIsRemoved) {
  ASSERT_TRUE(Load());
  const std::string other = std::filesystem::path(cache_.folder()) / "other.packed";
  support::WriteFile(other, "broken");
  auto entries = Unwrap(cache_.List());
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_EQ(entries[0].digest, DigestText(model_.digest()));
  EXPECT_EQ(entries[1].digest, "");
  EXPECT_EQ(Unwrap(cache_.Remove(entries[0])), entries[0].bytes);
  EXPECT_THAT(support::FileNames(cache_.folder()), ElementsAre("other.packed"));
  EXPECT_EQ(Unwrap(cache_.Remove(entries[0])), 0u);
}

// --- Files of no use ---------------------------------------------------------------------------

TEST_F(PackCacheTest, ALinkIsReplacedAndNotWhatItLeadsTo) {
  ASSERT_TRUE(Load());
  const std::filesystem::path path = cache_.PathFor(model_);
  const std::filesystem::path elsewhere = converted_.folder() / "elsewhere";
  const std::string model = support::ReadFile(converted_.path());
  support::WriteFile(elsewhere, "somebody's");
  for (const std::filesystem::path& target :
       {elsewhere, std::filesystem::path(converted_.path()), converted_.folder() / "absent",
        converted_.folder()}) {
    std::filesystem::remove(path);
    std::filesystem::create_symlink(target, path);
    const auto weights = Load();
    ASSERT_TRUE(weights) << weights.error().message();
    EXPECT_TRUE(weights->is_mapped()) << target;
    EXPECT_FALSE(std::filesystem::is_symlink(path)) << target;
    EXPECT_FALSE(std::filesystem::exists(converted_.folder() / "absent"));
    EXPECT_EQ(support::ReadFile(elsewhere), "somebody's");
    EXPECT_TRUE(support::ReadFile(converted_.path()) == model);
  }
  // One that leads to sound weights serves.
  std::filesystem::rename(path, elsewhere);
  std::filesystem::create_symlink(elsewhere, path);
  ASSERT_TRUE(Load());
  EXPECT_THAT(notices_, IsEmpty());
  EXPECT_TRUE(std::filesystem::is_symlink(path));
}

TEST_F(PackCacheTest, MemoryInsteadOfTheCacheIsAskedForFirst) {
  support::WriteFile(converted_.folder() / "file", "x");
  PackingOptions options = {.cache_folder = converted_.folder() / "file" / "cache"};
  int asked = 0;
  options.check_memory = [&]() -> Status {
    ++asked;
    return Fail(ErrorCode::kOutOfMemory, "it does not fit");
  };
  const auto refused = Load(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(refused.error().message(),
              testing::AllOf(HasSubstr("cannot make this folder"), HasSubstr("it does not fit")));
  EXPECT_EQ(asked, 1);
  // check_memory is not called if there is no cache.
  options.cache_folder.clear();
  EXPECT_TRUE(Load(options));
  EXPECT_EQ(asked, 1);
}

TEST_F(PackCacheTest, EveryDamagedByteOfTheHeadIsNoticedAndMended) {
  ASSERT_TRUE(Load());
  const std::string path = cache_.PathFor(model_);
  const std::string sound = support::ReadFile(path);
  const size_t head = sizeof(FilePreamble) + PreambleAt(sound, 0).metadata_bytes;
  const bool is_slow = support::IsEmulated() || support::kHeapIsSanitized;
  for (size_t at = 0; at < head; at += is_slow ? 9 : 1) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    support::WriteFile(path, bytes);
    ExpectRepacked(path);
    ASSERT_TRUE(support::ReadFile(path) == sound) << "byte " << at;
    if (HasFailure()) FAIL() << "byte " << at;
  }
  EXPECT_TRUE(SameBits(Logits(model_, *Load()), expected_));
}

TEST_F(PackCacheTest, AFileThatWasCutShortIsNoticedAndMended) {
  ASSERT_TRUE(Load());
  const std::string path = cache_.PathFor(model_);
  const std::string sound = support::ReadFile(path);
  for (size_t i = 0; i < 100; ++i) {
    support::WriteFile(path, sound.substr(0, i * sound.size() / 100));
    ExpectRepacked(path);
    ASSERT_TRUE(support::ReadFile(path) == sound) << i;
    if (HasFailure()) FAIL() << i;
  }
  EXPECT_TRUE(SameBits(Logits(model_, *Load()), expected_));
}

TEST_F(PackCacheTest, AnotherProcessorsFileIsReplaced) {
  ASSERT_TRUE(Load());
  const std::string path = cache_.PathFor(model_);
  const std::string sound = support::ReadFile(path);
  ForgeFingerprint(path);
  ASSERT_FALSE(support::ReadFile(path) == sound);
  ExpectRepacked("packed for another processor");
  EXPECT_TRUE(support::ReadFile(path) == sound);
}

TEST_F(PackCacheTest, AnotherModelsFileIsReplaced) {
  support::CheckpointSpec spec = support::SpecGqa();
  spec.seed = 2;
  const ConvertedModel other(spec);
  ASSERT_TRUE(cache_.MakeFolder());
  Unwrap(WritePackedFile(other.Open(), cache_.PathFor(model_), Unwrap(ThisProcessor()), pool_,
                         nullptr));
  ExpectRepacked("packed from another model");
  EXPECT_TRUE(SameBits(Logits(model_, *Load()), expected_));
}

// --- Places where nothing can be put -----------------------------------------------------------

TEST_F(PackCacheTest, AFolderThatCannotBeIsNoticedAndWeightsArePackedIntoMemory) {
  const std::string file = converted_.folder() / "file";
  support::WriteFile(file, "x");
  ExpectInMemory(file, file);
  ExpectInMemory(file + "/cache", file);
  ExpectInMemory(file + "/deep/cache", file);
  ExpectInMemory("/proc/no/folder", "/proc/no");
  EXPECT_EQ(support::ReadFile(file), "x");
}

TEST_F(PackCacheTest, AFolderInTheFilesPlaceIsNoticedAndLeftAlone) {
  const std::string path = cache_.PathFor(model_);
  std::filesystem::create_directories(path);
  ExpectInMemory(cache_.folder(), "not a regular file");
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST_F(PackCacheTest, ALimitOnTheSizeOfFilesIsNoticedAndLeavesNothing) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  ExpectInMemory(cache_.folder(), "there is no room");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(support::FileNames(cache_.folder()), IsEmpty());
}

TEST_F(PackCacheTest, AFullDiskIsNoticedAndLeavesNothing) {
  constexpr int kNotPermitted = 77;
  const std::string disk = converted_.folder() / "disk";
  std::filesystem::create_directory(disk);
  // In a child process, so that the mount ends with the process.
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) {
      _exit(kNotPermitted);
    }
    // The threads of the pool did not come along.
    const ThreadPool pool = Unwrap(ThreadPool::Create(1));
    std::string last_notice;
    const auto weights =
        LoadPackedWeights(model_,
                          {.cache_folder = disk + "/cache",
                           .on_progress = {},
                           .on_notice = [&](std::string_view notice) { last_notice = notice; }},
                          pool);
    EXPECT_TRUE(weights && !weights->is_mapped() && SameBits(Logits(model_, *weights), expected_));
    EXPECT_THAT(last_notice, HasSubstr("there is no room"));
    EXPECT_THAT(support::FileNames(disk + "/cache"), IsEmpty());
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNotPermitted) GTEST_SKIP() << "not permitted to mount a small disk";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// --- Errors that no other place mends ----------------------------------------------------------

TEST_F(PackCacheTest, StoppingIsAnErrorAndLeavesNothing) {
  for (int calls = 0; calls < 9; ++calls) {
    int left = calls;
    const auto weights =
        Load({.cache_folder = cache_.folder(),
              .on_progress = [&](uint64_t, uint64_t, std::string_view) { return left-- > 0; }});
    ASSERT_FALSE(weights) << calls;
    EXPECT_EQ(weights.error().code(), ErrorCode::kCancelled);
    EXPECT_THAT(support::FileNames(cache_.folder()), IsEmpty());
    EXPECT_THAT(notices_, SizeIs(1));
  }
}

TEST_F(PackCacheTest, DamagedPortableWeightsAreAnErrorAndLeaveNothing) {
  std::string bytes = support::ReadFile(converted_.path());
  const FileRange range = model_.tensor(TensorRole::kQkvProj, 0).data;
  bytes[range.offset + range.bytes / 2] ^= 4;
  support::WriteFile(converted_.folder() / "damaged.cria", bytes);
  const ModelFile damaged = Unwrap(ModelFile::Open(converted_.folder() / "damaged.cria"));
  const auto weights = LoadPackedWeights(damaged, {.cache_folder = cache_.folder()}, pool_);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code(), ErrorCode::kInvalidFile);
  EXPECT_THAT(weights.error().message(), HasSubstr("layers.0.qkv_proj"));
  EXPECT_THAT(support::FileNames(cache_.folder()), IsEmpty());
}

TEST_F(PackCacheTest, AFileThatWasNamedIsTheOnlyOne) {
  const std::string path = converted_.folder() / "mine";
  const PackingOptions options = {.packed_path = path, .cache_folder = cache_.folder()};
  const auto missing = Load(options);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);

  Unwrap(WritePackedFile(model_, path, Unwrap(ThisProcessor()), pool_, nullptr));
  const auto weights = Load(options);
  ASSERT_TRUE(weights) << weights.error().message();
  EXPECT_TRUE(weights->is_mapped());
  EXPECT_TRUE(SameBits(Logits(model_, *weights), expected_));

  ForgeFingerprint(path);
  const std::string forged = support::ReadFile(path);
  const auto refused = Load(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(support::ReadFile(path) == forged);
  EXPECT_THAT(notices_, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(cache_.folder()));
}

// --- Keeping house -----------------------------------------------------------------------------

TEST_F(PackCacheTest, AFolderThatDoesNotExistIsEmpty) {
  EXPECT_THAT(Unwrap(cache_.List()), IsEmpty());
  EXPECT_EQ(Unwrap(cache_.Clear()), 0u);
  EXPECT_THAT(Unwrap(PackCache("").List()), IsEmpty());
  EXPECT_FALSE(PackCache(converted_.path()).List());
  EXPECT_FALSE(PackCache(converted_.path()).Clear());
}

TEST_F(PackCacheTest, ListTellsWhatServesAndClearRemovesAllOfItAndNothingElse) {
  ASSERT_TRUE(Load());
  const std::filesystem::path folder = cache_.folder();
  const std::string sound = cache_.PathFor(model_);
  const std::string forged = folder / "z-forged.packed";
  std::filesystem::copy_file(sound, forged);
  ForgeFingerprint(forged);
  // The stem of a model's name may end like this too.
  std::filesystem::copy_file(sound, folder / "a.packed-0123456789abcdef.packed");
  support::WriteFile(folder / ".model.packed.tmp-123-0", "left behind");
  for (const char* name : {"notes.txt", "model.packed.bak", "packed", ".hidden.tmp-1-0"}) {
    support::WriteFile(folder / name, "not of the cache");
  }
  std::filesystem::create_directory(folder / "folder.packed");
  std::filesystem::create_symlink("nowhere", folder / "broken.packed");

  const auto entries = Unwrap(cache_.List());
  ASSERT_THAT(entries, SizeIs(4));
  EXPECT_THAT(entries[0].path, HasSubstr(".model.packed.tmp-123-0"));
  EXPECT_THAT(entries[0].defect, HasSubstr("too short"));
  EXPECT_EQ(entries[0].bytes, 11u);
  EXPECT_THAT(entries[1].path, HasSubstr("a.packed-"));
  EXPECT_EQ(entries[1].defect, "");
  EXPECT_EQ(entries[2].path, sound);
  EXPECT_EQ(entries[2].defect, "");
  EXPECT_EQ(entries[2].model_name, model_.name());
  EXPECT_EQ(entries[2].bytes, std::filesystem::file_size(sound));
  EXPECT_EQ(entries[3].path, forged);
  EXPECT_THAT(entries[3].defect, HasSubstr("another processor"));
  EXPECT_EQ(entries[3].model_name, model_.name());

  EXPECT_EQ(Unwrap(cache_.Clear()), 3 * entries[2].bytes + 11);
  EXPECT_THAT(support::FileNames(folder),
              ElementsAre(".hidden.tmp-1-0", "broken.packed", "folder.packed", "model.packed.bak",
                          "notes.txt", "packed"));
}

TEST_F(PackCacheTest, ClearedWeightsStayWhereTheyAreMapped) {
  const auto weights = Load();
  ASSERT_TRUE(weights);
  Unwrap(cache_.Clear());
  EXPECT_TRUE(SameBits(Logits(model_, *weights), expected_));
}

// Between writing the file and mapping it, another program may have cleared the cache.
TEST_F(PackCacheTest, ClearingWhilePackingIsNoError) {
  const auto weights = Load(
      {.cache_folder = cache_.folder(), .on_progress = [&](uint64_t, uint64_t, std::string_view) {
         Unwrap(cache_.Clear());
         return true;
       }});
  ASSERT_TRUE(weights) << weights.error().message();
  EXPECT_FALSE(weights->is_mapped());
  EXPECT_TRUE(SameBits(Logits(model_, *weights), expected_));
}

}  // namespace
}  // namespace cria::xnn
