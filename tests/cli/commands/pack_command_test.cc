// What `cria pack` does for its users: the cache, files that are named, and boards' processors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/packing_fixture.h"
#include "core/format.h"
#include "core/platform.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/unwrap.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

using support::RunOptions;
using support::RunProgram;
using support::RunResult;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using Json = nlohmann::json;

using PackCommand = PackingTest<TinyModel>;

TEST_F(PackCommand, PacksIntoTheCacheThatRunLooksInto) {
  const RunResult packed = Cria({"pack", "-m", ModelPath(), "--pack-cache", Folder()});
  EXPECT_EQ(packed.exit_code, 0) << packed.error;
  ASSERT_THAT(support::FileNames(Folder()), SizeIs(1));
  EXPECT_THAT(packed.output, HasSubstr(support::FileNames(Folder())[0]));
  EXPECT_THAT(ExpectText().error, Not(HasSubstr("packing")));
  // The environment variable works as well.
  EXPECT_THAT(ExpectText({}, {.environment = {"CRIA_PACK_CACHE=" + Folder()}}).error,
              Not(HasSubstr("packing")));
}

TEST_F(PackCommand, RunPacksOnceAndSaysSo) {
  EXPECT_THAT(ExpectText().error, HasSubstr("packing the weights for this processor into"));
  EXPECT_THAT(support::FileNames(Folder()), SizeIs(1));
  EXPECT_THAT(ExpectText().error, Not(HasSubstr("packing")));
}

TEST_F(PackCommand, ListsAndClears) {
  const std::vector<std::string> list = {"pack", "--list", "--pack-cache", Folder()};
  const RunResult none = Cria(list);
  EXPECT_EQ(none.exit_code, 0) << none.error;
  EXPECT_THAT(none.output, HasSubstr("holds no packed weights"));
  ExpectText();
  support::WriteFile(Folder() + "/.model-0.packed.tmp-1-0", "left behind");
  const RunResult some = Cria(list);
  EXPECT_EQ(some.exit_code, 0) << some.error;
  EXPECT_EQ(std::ranges::count(some.output, '\n'), 3) << some.output;
  EXPECT_THAT(some.output, AllOf(HasSubstr("not usable here"), HasSubstr("  unknown  "),
                                 HasSubstr("  in 2 files of " + Folder() + "\n")));
  const RunResult cleared = Cria({"pack", "--clear", "--pack-cache", Folder()});
  EXPECT_EQ(cleared.exit_code, 0) << cleared.error;
  EXPECT_THAT(cleared.output, HasSubstr("freed"));
  EXPECT_THAT(support::FileNames(Folder()), IsEmpty());
  EXPECT_EQ(Cria({"pack", "--clear", "--list", "--pack-cache", Folder()}).exit_code, 2);
}

TEST_F(PackCommand, ListTellsConversionsOfOneModelApart) {
  const auto pack = [&](const std::string& weights) {
    support::WriteHuggingFaceDirectory(support::MakeModel(support::SpecTied()), Path("checkpoint"),
                                       {});
    const std::string model = Path(weights + ".cria");
    const RunResult converted = RunProgram(
        {support::kModelConverter, Path("checkpoint"), "-o", model, "--weights", weights});
    ASSERT_EQ(converted.exit_code, 0) << converted.error;
    const RunResult packed = Cria({"pack", "-m", model, "--pack-cache", Folder()});
    ASSERT_EQ(packed.exit_code, 0) << packed.error;
  };
  for (const char* const weights : {"int4", "int8", "f32"}) pack(weights);
  for (const std::string& name : support::FileNames(Folder())) {
    // 2001-09-09 01:46:40 in UTC.
    const auto time = std::chrono::sys_seconds(std::chrono::seconds(1'000'000'000));
    fs::last_write_time(Folder() + "/" + name, std::chrono::file_clock::from_sys(time));
  }
  const RunResult list =
      Cria({"pack", "--list", "--pack-cache", Folder()}, {.environment = {"TZ=UTC"}});
  EXPECT_EQ(list.exit_code, 0) << list.error;
  EXPECT_THAT(list.output, AllOf(HasSubstr("  2001-09-09 01:46  int4 "), HasSubstr("  int8 "),
                                 HasSubstr("  f32 "), HasSubstr("  in 3 files of ")));

  const RunResult as_json = Cria({"pack", "--list", "--json", "--pack-cache", Folder()});
  EXPECT_EQ(as_json.exit_code, 0) << as_json.error;
  const Json json = Json::parse(as_json.output);
  EXPECT_EQ(json["folder"], Folder());
  ASSERT_THAT(json["files"], SizeIs(3));
  uint64_t bytes = 0;
  std::vector<std::string> weights;
  for (const Json& file : json["files"]) {
    EXPECT_EQ(file["bytes"], fs::file_size(file["path"].get<std::string>()));
    EXPECT_EQ(file["packed_at"], "2001-09-09T01:46:40Z");
    EXPECT_EQ(file["usable"], true);
    EXPECT_THAT(file["path"].get<std::string>(), HasSubstr(file["digest"].get<std::string>()));
    bytes += file["bytes"].get<uint64_t>();
    weights.push_back(file["weights"]);
  }
  EXPECT_EQ(json["bytes"], bytes);
  EXPECT_THAT(weights, UnorderedElementsAre("int4", "int8", "f32"));
  ExpectError(Cria({"pack", "-m", ModelPath(), "--json"}), 2, "only --list takes --json");
}

TEST_F(PackCommand, ListKnowsNoSchemeOfOlderFiles) {
  fs::create_directory(Folder());
  fs::copy_file(support::SourcePath("tests/golden/made_by_0.1.0/mistral-int8.cortex-a76.packed"),
                Folder() + "/old.packed");
  const RunResult list = Cria({"pack", "--list", "--json", "--pack-cache", Folder()});
  EXPECT_EQ(list.exit_code, 0) << list.error;
  const Json json = Json::parse(list.output);
  ASSERT_THAT(json["files"], SizeIs(1));
  EXPECT_EQ(json["files"][0]["weights"], "unknown");
  EXPECT_NE(json["files"][0]["digest"], "");
}

TEST_F(PackCommand, RemovesOldPackedWeightsThatNobodyUses) {
  const auto remove = [&](const std::string& age) {
    return Cria({"pack", "--remove", "--older-than", age, "--pack-cache", Folder()});
  };
  ExpectText();
  const std::string name = support::FileNames(Folder()).at(0);
  const auto make_old = [&](const std::string& file) {
    fs::last_write_time(Folder() + "/" + file,
                        fs::file_time_type::clock::now() - std::chrono::hours(24 * 10 + 1));
  };
  // Files that are no packed weights, and a link to one that is.
  support::WriteFile(Folder() + "/notes.packed", "somebody's");
  support::WriteFile(Folder() + "/.x.packed.tmp-1-0", "left behind");
  fs::rename(Folder() + "/" + name, Path("elsewhere"));
  fs::create_symlink(Path("elsewhere"), Folder() + "/link.packed");
  fs::copy_file(Path("elsewhere"), Folder() + "/" + name);
  fs::copy_file(Path("elsewhere"), Folder() + "/young.packed");
  fs::copy_file(Path("elsewhere"), Folder() + "/damaged.packed");
  fs::resize_file(Folder() + "/damaged.packed", 1000);
  const std::vector<std::string> old = {"notes.packed", ".x.packed.tmp-1-0", "link.packed", name,
                                        "damaged.packed"};
  std::ranges::for_each(old, make_old);
  const std::vector<std::string> all = support::FileNames(Folder());
  for (const char* const age : {"11d", "264h", "2w"}) {
    const RunResult none = remove(age);
    EXPECT_EQ(none.exit_code, 0) << none.error;
    EXPECT_EQ(none.output, Folder() + " holds no packed weights older than " + age + "\n");
  }
  {
    // A program has mapped one of them.
    const platform::FileMapping mapping = [&] {
      return Unwrap(Unwrap(platform::File::Open(Folder() + "/" + name)).Map(0, 64));
    }();
    const RunResult used = remove("10d");
    EXPECT_EQ(used.exit_code, 0) << used.error;
    EXPECT_THAT(used.output,
                AllOf(HasSubstr("kept: " + Folder() + "/" + name + ": is used by a program\n"),
                      HasSubstr("1.0 kB freed: " + Folder() + "/damaged.packed\n"),
                      HasSubstr("1.0 kB freed in " + Folder() + "\n")));
    EXPECT_TRUE(fs::exists(Folder() + "/" + name));
  }
  const RunResult removed = remove("240h");
  EXPECT_EQ(removed.exit_code, 0) << removed.error;
  EXPECT_THAT(removed.output, HasSubstr("freed: " + Folder() + "/" + name + "\n"));
  for (const char* const kept : {"notes.packed", ".x.packed.tmp-1-0", "link.packed"}) {
    EXPECT_THAT(removed.output, HasSubstr("kept: " + Folder() + "/" + kept +
                                          ": is not a file of packed weights\n"));
  }
  EXPECT_THAT(
      support::FileNames(Folder()),
      UnorderedElementsAre("notes.packed", ".x.packed.tmp-1-0", "link.packed", "young.packed"));
  EXPECT_TRUE(fs::exists(Path("elsewhere")));
}

TEST_F(PackCommand, AgesThatAreNoneAreRefused) {
  for (const char* const age :
       {"", "30", "d", "-1d", "1.5d", "30m", "30 d", "30dd", "100001w", "99999999999999999999h"}) {
    ExpectError(Cria({"pack", "--remove", "--older-than", age, "--pack-cache", Folder()}), 2,
                "an age such as 12h, 30d or 8w");
  }
  ExpectError(Cria({"pack", "--older-than", "30d"}), 2, "only --remove takes --older-than");
  ExpectError(Cria({"pack", "--remove", "--older-than", "30d", "-m", ModelPath()}), 2,
              "say which model's packed weights to remove");
}

TEST_F(PackCommand, ACopyOfTheModelIsNotPackedAgain) {
  ExpectText();
  fs::copy_file(ModelPath(), Path("renamed.cria"));
  const RunResult run = RunProgram(RunArguments({"--pack-cache", Folder()}, Path("renamed.cria")));
  EXPECT_EQ(run.output, expected_);
  EXPECT_THAT(run.error, Not(HasSubstr("packing")));
  EXPECT_THAT(support::FileNames(Folder()), SizeIs(1));
}

TEST_F(PackCommand, RemovesThePackedWeightsOfOneModel) {
  const auto remove = [&](std::vector<std::string> what) {
    what.insert(what.begin(), {"pack", "--remove", "--pack-cache", Folder()});
    return Cria(what);
  };
  ExpectError(remove({"-m", ModelPath()}), 1, "holds no packed weights of " + ModelPath());
  ExpectText();
  const std::string name = support::FileNames(Folder()).at(0);
  support::WriteFile(Folder() + "/broken.packed", "x");
  ExpectError(remove({}), 2, "say which model's packed weights to remove");
  ExpectError(remove({"-m", ModelPath(), name}), 2, "say which model's packed weights to remove");
  ExpectError(remove({"0123456789"}), 1, "holds no packed weights of 0123456789");
  // Too few digits for a digest.
  ExpectError(remove({name.substr(0, 7)}), 1, "holds no packed weights of");
  ExpectError(Cria({"pack", name}), 2, "only --remove takes a name");
  for (const std::string& what : {name, Folder() + "/" + name, name.substr(0, 8)}) {
    const RunResult removed = remove({what});
    EXPECT_EQ(removed.exit_code, 0) << removed.error;
    EXPECT_THAT(removed.output, AllOf(HasSubstr("freed: "), HasSubstr(name)));
    EXPECT_EQ(support::FileNames(Folder()), std::vector<std::string>{"broken.packed"});
    ExpectText();
  }
  EXPECT_EQ(remove({"broken.packed"}).exit_code, 0);
  EXPECT_EQ(remove({"-m", ModelPath()}).exit_code, 0);
  EXPECT_THAT(support::FileNames(Folder()), IsEmpty());
}

TEST_F(PackCommand, AFileOfAnotherProgramIsKeptUnlessOverwriteIsGiven) {
  const std::string file = Path("notes.txt");
  support::WriteFile(file, "important");
  for (const bool is_standalone : {false, true}) {
    std::vector<std::string> arguments = {"pack", "-m", ModelPath(), "-o", file};
    if (is_standalone) arguments.emplace_back("--standalone");
    ExpectError(Cria(arguments), 2,
                "is a file that Cria did not write, which would be replaced; choose another name, "
                "or replace it with --overwrite");
  }
  EXPECT_EQ(support::ReadFile(file), "important");
  EXPECT_EQ(Cria({"pack", "-m", ModelPath(), "-o", file, "--overwrite"}).exit_code, 0);
  // Cria wrote it now.
  EXPECT_EQ(Cria({"pack", "-m", ModelPath(), "-o", file}).exit_code, 0);
  ExpectText({"--packed", file});
}

// Every command that takes nothing but a model file says what was given instead; the others would
// convert it, and ask before.
TEST_F(PackCommand, ACheckpointIsNamedWithTheCommandThatConvertsIt) {
  const std::string file = Path("a model.gguf");
  support::WriteFile(file, "GGUF");
  const std::string words =
      "is a GGUF file and not a Cria model file; convert it with: "
      "cria-convert '" +
      file + "' -o 'a model.cria'";
  for (const char* command : {"chat", "bench"}) {
    ExpectError(Cria({command, "-m", file}), 2, "-y converts it, and so does cria pull '" + file);
  }
  for (const char* command : {"info", "pack"}) {
    ExpectError(Cria({command, "-m", file}), 1, words);
  }
  ExpectError(Cria({"tokenize", "-m", file, "-p", "x"}), 1, words);
  ExpectError(Cria({"perplexity", "-m", file, "-f", file}), 1, words);
}

TEST_F(PackCommand, UsageErrorsExitWithTwo) {
  ExpectError(Cria({"pack"}), 2, "say which model to pack");
  ExpectError(Cria({"pack", "-m", ModelPath(), "--standalone"}), 2, "name it with -o");
  ExpectError(Cria({"pack", "-m", ModelPath(), "-o", ModelPath()}), 2, "is the model itself");
  ExpectError(Cria({"pack", "-m", ModelPath(), "-o", ModelPath(), "--standalone"}), 2,
              "is the model itself");
  ExpectError(Cria({"pack", "-m", Path("no.cria")}), 1, "no.cria");
  ExpectError(Cria({"pack", "-m", ModelPath(), "-o", Path("no/folder/file")}), 1,
              "make its folder first");
  EXPECT_THAT(support::FileNames(own_.path()), IsEmpty());
  ExpectText({"--no-pack-cache"});
}

TEST_F(PackCommand, ALinkIsReplacedInTheCacheAndFollowedElsewhere) {
  ASSERT_EQ(Cria({"pack", "-m", ModelPath(), "--pack-cache", Folder()}).exit_code, 0);
  const std::string cached = Folder() + "/" + support::FileNames(Folder()).at(0);
  support::WriteFile(Path("elsewhere"), "somebody's");
  const auto link_to_elsewhere = [&](const std::string& link) {
    fs::remove(link);
    fs::create_symlink(Path("elsewhere"), link);
  };
  link_to_elsewhere(cached);
  ASSERT_EQ(Cria({"pack", "-m", ModelPath(), "--pack-cache", Folder()}).exit_code, 0);
  EXPECT_FALSE(fs::is_symlink(cached));
  EXPECT_EQ(support::ReadFile(Path("elsewhere")), "somebody's");
  link_to_elsewhere(cached);
  ExpectText();
  EXPECT_FALSE(fs::is_symlink(cached));
  EXPECT_EQ(support::ReadFile(Path("elsewhere")), "somebody's");
  link_to_elsewhere(Path("link"));
  ASSERT_EQ(Cria({"pack", "-m", ModelPath(), "-o", Path("link"), "--overwrite"}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(support::ReadFile(Path("elsewhere")), support::ReadFile(cached));
}

TEST_F(PackCommand, ForNamesTheProcessorsThatItKnows) {
  const RunResult run = Cria({"pack", "-m", ModelPath(), "-o", Path("out"), "--for", "cortex-m0"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error, AllOf(HasSubstr("cortex-m0"), HasSubstr("cortex-a76")));
}

TEST_F(PackCommand, ForAndCheckExcludeEachOther) {
  ExpectError(
      Cria({"pack", "-m", ModelPath(), "-o", Path("out"), "--for", "cortex-a76", "--check"}), 2,
      "exclude each other");
}

TEST_F(PackCommand, ForDoesNotPackIntoTheCache) {
  const RunResult run = Cria({"pack", "-m", ModelPath(), "--for", "cortex-a76"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error, HasSubstr("-o"));
}

#ifdef __x86_64__  // No processor of this kind packs as a Cortex-A76 does.

// Has files that look like a program for aarch64 and its sysroot.
class PackCommandForAarch64 : public PackCommand {
 protected:
  void SetUp() override {
    std::string head(20, '\0');
    head.replace(0, 4, "\177ELF");
    head[18] = static_cast<char>(183);
    support::WriteFile(Path("device-cria"), head);
    fs::permissions(Path("device-cria"), fs::perms::owner_all);
    fs::create_directory(Path("lib"));
    support::WriteFile(Path("lib/ld-linux-aarch64.so.1"), "");
  }

  RunResult PackFor(const std::string& program, const std::string& sysroot,
                    const std::string& path) {
    return Cria({"pack", "-m", ModelPath(), "-o", Path("out"), "--standalone", "-t", "3", "--for",
                 "cortex-a76"},
                {.environment = {"PATH=" + path, "CRIA_AARCH64_PROGRAM=" + program,
                                 "QEMU_LD_PREFIX=" + sysroot}});
  }
};

TEST_F(PackCommandForAarch64, GoesOnAsItsProgram) {
  // A script that prints how it was started.
  support::WriteFile(Path("qemu-aarch64"), "#!/bin/sh\necho $QEMU_CPU $CRIA_EMULATED_FOR \"$@\"\n");
  fs::permissions(Path("qemu-aarch64"), fs::perms::owner_all);
  const RunResult run = PackFor(Path("device-cria"), own_.path(), own_.path().string() + ":/bin");
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(run.output, Format("cortex-a76 cortex-a76 {} pack -m {} -o {} -t 3 --for cortex-a76 "
                               "--standalone\n",
                               Path("device-cria"), ModelPath(), Path("out")));
}

TEST_F(PackCommandForAarch64, WithoutWhatItTakesSaysWhatToDo) {
  ExpectError(PackFor("/none", own_.path(), "/bin"), 1, "./dev build aarch64");
  ExpectError(PackFor("/bin/sh", own_.path(), "/bin"), 1, "is not a program for aarch64");
  ExpectError(PackFor(Path("device-cria"), Folder(), "/bin"), 1,
              "run `./dev build aarch64`, or name the folder of the sysroot in QEMU_LD_PREFIX");
  ExpectError(PackFor(Path("device-cria"), own_.path(), Folder()), 1, "apt-get install qemu-user");

  // The program that runs under the emulator must not start another one.
  ExpectError(Cria({"pack", "-m", ModelPath(), "-o", Path("out"), "--for", "cortex-a76"},
                   {.environment = {"CRIA_EMULATED_FOR=cortex-a76"}}),
              1, "on the board itself");
}

#endif

TEST_F(PackCommand, AFileThatWasPackedServesWhereItIsNamed) {
  const std::string packed = Path("my.packed");
  ASSERT_EQ(Cria({"pack", "-m", ModelPath(), "-o", packed}).exit_code, 0);
  EXPECT_THAT(ExpectText({"--packed", packed, "--pack-cache", Folder()}).error,
              Not(HasSubstr("packing")));
  EXPECT_THAT(support::FileNames(Folder()), IsEmpty());
  ExpectError(RunProgram(RunArguments({"--packed", Path("no.packed")})), 1, "no.packed");
  ExpectError(RunProgram(RunArguments({"--packed", ModelPath()})), 1,
              "is not a file of packed weights");
  ExpectError(Cria({"info", packed}), 1, "has packed weights, which belong to a Cria model file");
  fs::resize_file(packed, fs::file_size(packed) - 1);
  ExpectError(RunProgram(RunArguments({"--packed", packed})), 1, "cut short");
}

TEST_F(PackCommand, AFullDiskIsToldAndTheRunGoesOn) {
  const RunOptions full = {.file_size_limit_bytes = 4096};
  const RunResult run = ExpectText({"--pack-cache", Folder()}, full);
  EXPECT_THAT(run.error, AllOf(HasSubstr("there is no room"), HasSubstr("into memory instead")));
  ExpectError(Cria({"pack", "-m", ModelPath(), "-o", Path("packed")}, full), 1, "there is no room");
  EXPECT_FALSE(fs::exists(Path("packed")));
  EXPECT_THAT(support::FileNames(Folder()), IsEmpty());
}

}  // namespace
}  // namespace cria
