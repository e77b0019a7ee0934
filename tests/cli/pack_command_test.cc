// Packed weights as a person meets them: cria pack, and what happens to its files when programs are
// killed, stopped or race.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <format>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/emulation.h"
#include "support/files.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

using support::RunOptions;
using support::RunProgram;
using support::RunResult;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

using Clock = std::chrono::steady_clock;

bool IsTemporary(const std::string& name) { return name.find(".tmp-") != std::string::npos; }

RunResult Cria(std::vector<std::string> arguments, const RunOptions& options = {}) {
  arguments.insert(arguments.begin(), CRIA_PROGRAM);
  return RunProgram(arguments, options);
}

// A model for all tests of a program, and a folder for each of them.
template <typename Maker>
class ProgramTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = new support::TemporaryDirectory;
    Maker::Make(shared_->path() / "checkpoint", ModelPath());
    fs::remove_all(shared_->path() / "checkpoint");
    const RunResult run = RunProgram(RunArguments({"--no-pack-cache"}));
    ASSERT_EQ(run.exit_code, 0) << run.error;
    expected_ = run.output;
  }
  static void TearDownTestSuite() { delete shared_; }

  static std::string ModelPath() { return shared_->path() / "model.cria"; }
  std::string Folder() const { return own_.path() / "cache"; }
  std::string Path(const std::string& name) const { return own_.path() / name; }

  static std::vector<std::string> RunArguments(const std::vector<std::string>& more,
                                               const std::string& model = ModelPath()) {
    std::vector<std::string> arguments = {
        CRIA_PROGRAM, "run", "-m", model, "-p", "abc", "-n", "6", "--temp", "0", "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // Runs with the folder as cache, and wants the right text.
  RunResult ExpectText(const std::vector<std::string>& more, const RunOptions& options = {}) {
    RunResult run = RunProgram(RunArguments(more), options);
    EXPECT_EQ(run.exit_code, 0) << run.error;
    EXPECT_EQ(run.output, expected_);
    return run;
  }
  RunResult ExpectText() { return ExpectText({"--pack-cache", Folder()}); }

  // What every failure looks like: one sentence, the last on standard error.
  static void ExpectError(const RunResult& result, int exit_code, const std::string& words) {
    EXPECT_EQ(result.exit_code, exit_code) << result.error;
    const size_t sentence = result.error.find("cria: error: ");
    ASSERT_NE(sentence, std::string::npos) << result.error;
    EXPECT_THAT(result.error.substr(sentence), HasSubstr(words));
    EXPECT_EQ(std::count(result.error.begin() + static_cast<ptrdiff_t>(sentence),
                         result.error.end(), '\n'),
              1)
        << result.error;
  }

  static support::TemporaryDirectory* shared_;
  static std::string expected_;
  support::TemporaryDirectory own_;
};

template <typename Maker>
support::TemporaryDirectory* ProgramTest<Maker>::shared_ = nullptr;
template <typename Maker>
std::string ProgramTest<Maker>::expected_;

void ConvertTo(const std::string& checkpoint, const std::string& model) {
  const RunResult converted =
      RunProgram({CRIA_CONVERT_PROGRAM, checkpoint, "-o", model, "--weights", "int8"});
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
}

struct TinyModel {
  static void Make(const std::string& checkpoint, const std::string& model) {
    support::WriteHuggingFaceDirectory(support::MakeModel(support::SpecTied()), checkpoint, {});
    ConvertTo(checkpoint, model);
  }
};
using PackCommand = ProgramTest<TinyModel>;

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
  EXPECT_EQ(std::ranges::count(some.output, '\n'), 2) << some.output;
  EXPECT_THAT(some.output, HasSubstr("not usable here"));
  const RunResult cleared = Cria({"pack", "--clear", "--pack-cache", Folder()});
  EXPECT_EQ(cleared.exit_code, 0) << cleared.error;
  EXPECT_THAT(cleared.output, HasSubstr("freed"));
  EXPECT_THAT(support::FileNames(Folder()), IsEmpty());
  EXPECT_EQ(Cria({"pack", "--clear", "--list", "--pack-cache", Folder()}).exit_code, 2);
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
  ASSERT_EQ(Cria({"pack", "-m", ModelPath(), "-o", Path("link")}).exit_code, 0);
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

#ifdef __x86_64__  // None of which packs as a cortex-a76 does.

// What looks like a program for aarch64 and its sysroot, to what starts it.
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
  // Tells how it was started.
  support::WriteFile(Path("qemu-aarch64"), "#!/bin/sh\necho $QEMU_CPU $CRIA_EMULATED_FOR \"$@\"\n");
  fs::permissions(Path("qemu-aarch64"), fs::perms::owner_all);
  const RunResult run = PackFor(Path("device-cria"), own_.path(), own_.path().string() + ":/bin");
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(run.output,
            std::format("cortex-a76 cortex-a76 {} pack -m {} -o {} -t 3 --for cortex-a76 "
                        "--standalone\n",
                        Path("device-cria"), ModelPath(), Path("out")));
}

TEST_F(PackCommandForAarch64, WithoutWhatItTakesSaysWhatToDo) {
  ExpectError(PackFor("/none", own_.path(), "/bin"), 1, "./dev build aarch64");
  ExpectError(PackFor("/bin/sh", own_.path(), "/bin"), 1, "is no program for aarch64");
  ExpectError(PackFor(Path("device-cria"), Folder(), "/bin"), 1,
              "run `./dev build aarch64`, or name the folder of the sysroot in QEMU_LD_PREFIX");
  ExpectError(PackFor(Path("device-cria"), own_.path(), Folder()), 1, "apt-get install qemu-user");

  // Emulated already, it packs otherwise all the same.
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
  ExpectError(Cria({"info", packed}), 1, "is not a Cria model file");
  fs::resize_file(packed, fs::file_size(packed) - 1);
  ExpectError(RunProgram(RunArguments({"--packed", packed})), 1, "cut short");
}

class StandaloneModel : public PackCommand {
 protected:
  void SetUp() override {
    const RunResult packed = Cria({"pack", "-m", ModelPath(), "--standalone", "-o", model_});
    ASSERT_EQ(packed.exit_code, 0) << packed.error;
    EXPECT_THAT(packed.output, HasSubstr("for the embedding table"));
  }

  std::string model_ = Path("standalone.cria");
};

TEST_F(StandaloneModel, ServesEveryCommandAsTheModelDoes) {
  const RunResult run = RunProgram(RunArguments({"--pack-cache", Folder()}, model_));
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(run.output, expected_);
  EXPECT_THAT(run.error, Not(HasSubstr("packing")));
  EXPECT_EQ(RunProgram(RunArguments({"--no-pack-cache"}, model_)).output, expected_);

  support::WriteFile(Path("text"), std::string(200, 'e') + " some words");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"perplexity", "-f", Path("text"), "-c", "64", "--pack-cache",
                                 Folder()},
        {"tokenize", "-p", "some words"}}) {
    std::vector<std::string> portable = command;
    portable.insert(portable.end(), {"-m", ModelPath()});
    std::vector<std::string> standalone = command;
    standalone.insert(standalone.end(), {"-m", model_});
    const RunResult expected = Cria(portable);
    const RunResult result = Cria(standalone);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.output, expected.output);
    EXPECT_FALSE(result.output.empty()) << expected.error;
  }
}

TEST_F(StandaloneModel, InfoTellsTheSameDigest) {
  const auto told = [](const std::string& path) {
    const RunResult info = Cria({"info", path, "--json"});
    EXPECT_EQ(info.exit_code, 0) << info.error;
    return nlohmann::json::parse(info.output);
  };
  EXPECT_EQ(told(model_)["digest"], told(ModelPath())["digest"]);
  EXPECT_EQ(told(model_)["file_bytes"], fs::file_size(model_));
  const RunResult check = Cria({"info", model_, "--check"});
  EXPECT_EQ(check.exit_code, 0) << check.error;
  EXPECT_THAT(check.error, HasSubstr("every checksum matches"));
}

TEST_F(StandaloneModel, CheckFindsDamageInBothOfItsParts) {
  const std::string sound = support::ReadFile(model_);
  const auto info = nlohmann::json::parse(Cria({"info", model_, "--json"}).output);
  // The embedding table lies in the first part, packed weights at the end.
  const size_t embedding = info["tensors"][0]["offset"];
  for (const size_t at : {embedding, sound.size() - 1024}) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    support::WriteFile(Path("damaged.cria"), bytes);
    ExpectError(Cria({"info", Path("damaged.cria"), "--check"}), 1, "checksum does not match");
  }
}

TEST_F(StandaloneModel, IsNotPackedAgain) {
  ExpectError(Cria({"pack", "-m", model_, "-o", Path("again")}), 2, "already has packed weights");
  ExpectError(Cria({"pack", "-m", model_, "--standalone", "-o", Path("again")}), 2,
              "already has packed weights");
  ExpectError(Cria({"pack", "-m", model_, "--pack-cache", Folder()}), 2,
              "already has packed weights");
  EXPECT_FALSE(fs::exists(Path("again")));
}

TEST_F(PackCommand, AFullDiskIsToldAndTheRunGoesOn) {
  const RunOptions full = {.file_size_limit_bytes = 4096};
  const RunResult run = ExpectText({"--pack-cache", Folder()}, full);
  EXPECT_THAT(run.error, AllOf(HasSubstr("there is no room"), HasSubstr("into memory instead")));
  ExpectError(Cria({"pack", "-m", ModelPath(), "-o", Path("packed")}, full), 1, "there is no room");
  EXPECT_FALSE(fs::exists(Path("packed")));
  EXPECT_THAT(support::FileNames(Folder()), IsEmpty());
}

// --- Killed, stopped, racing -------------------------------------------------------------------

// Six million weights: packing takes some tens of milliseconds.
struct LargeModel {
  static void Make(const std::string& checkpoint, const std::string& model) {
    const RunResult made =
        RunProgram({CRIA_MAKE_CHECKPOINT, "-o", checkpoint, "--shape", "stories15m", "--vocab-size",
                    "2000", "--num-hidden-layers", "6"});
    ASSERT_EQ(made.exit_code, 0) << made.error;
    ConvertTo(checkpoint, model);
  }
};

class PackCrash : public ProgramTest<LargeModel> {
 protected:
  std::vector<std::string> PackArguments() const {
    return {"pack", "-m", ModelPath(), "--pack-cache", Folder(), "-t", "2"};
  }
  size_t Leftovers() const {
    return static_cast<size_t>(std::ranges::count_if(support::FileNames(Folder()), IsTemporary));
  }
  // Runs these shell commands at once; all must succeed.
  void ExpectAllSucceed(const std::vector<std::string>& commands) {
    std::string script;
    for (const std::string& command : commands) script += command + " & p=\"$p $!\"\n";
    script += "s=0; for i in $p; do wait $i || s=1; done; exit $s\n";
    const RunResult result = RunProgram({"/bin/sh", "-c", script});
    EXPECT_EQ(result.exit_code, 0) << result.error;
  }
  static std::string Quote(const std::vector<std::string>& arguments) {
    std::string line;
    for (const std::string& argument : arguments) line += "'" + argument + "' ";
    return line;
  }
  // Sends a signal once the temporary file is there.
  std::function<void(int)> InterruptWhenWriting() {
    return [this](int program) {
      const auto deadline = Clock::now() + std::chrono::seconds(10);
      while (Leftovers() == 0 && Clock::now() < deadline && kill(program, 0) == 0) usleep(100);
      kill(program, SIGINT);
    };
  }
};

TEST_F(PackCrash, KilledAtAnyMomentItLeavesNothingThatHarms) {
  double whole_microseconds = 1e6;
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    ASSERT_EQ(Cria(PackArguments()).exit_code, 0);
    const std::chrono::duration<double, std::micro> taken = Clock::now() - start;
    whole_microseconds = std::min(whole_microseconds, taken.count());
  }
  const std::string sound = support::ReadFile(Folder() + "/" + support::FileNames(Folder()).at(0));

  std::mt19937 random(7);
  std::uniform_real_distribution<double> moment(0.0, 1.1);
  int killed_while_writing = 0;
  for (int round = 0; round < 50; ++round) {
    // Every other time there is a whole file already.
    if (round % 2 == 0) fs::remove_all(Folder());
    const auto delay = static_cast<useconds_t>(moment(random) * whole_microseconds);
    const RunResult packed = Cria(PackArguments(), {.after_start = [&](int program) {
                                    usleep(delay);
                                    kill(program, SIGKILL);
                                  }});
    killed_while_writing += packed.signal == SIGKILL && Leftovers() > 0;
    ASSERT_LE(Leftovers(), 1u) << "round " << round;
    const RunResult run = ExpectText();
    // A file that was there serves, and its folder is not looked through.
    ASSERT_LE(Leftovers(), round % 2 == 0 ? 0u : 1u) << "round " << round;
    const auto names = support::FileNames(Folder());
    const auto file = std::ranges::find_if_not(names, IsTemporary);
    ASSERT_NE(file, names.end());
    ASSERT_TRUE(support::ReadFile(Folder() + "/" + *file) == sound) << "round " << round;
    if (HasFailure()) FAIL() << "round " << round << "\n" << run.error;
  }
  RecordProperty("killed_while_writing", killed_while_writing);
  // An emulated program starts slowly, so that most are killed before they write.
  EXPECT_GE(killed_while_writing, support::IsEmulated() ? 1 : 5);
  ASSERT_EQ(Cria(PackArguments()).exit_code, 0);
  EXPECT_THAT(support::FileNames(Folder()), SizeIs(1));
}

TEST_F(PackCrash, TwoRunsAtOnceOnAnEmptyCache) {
  for (int round = 0; round < 10; ++round) {
    fs::remove_all(Folder());
    const std::string run = Quote(RunArguments({"--pack-cache", Folder(), "-t", "1"}));
    ExpectAllSucceed({run + ">" + Path("a"), run + ">" + Path("b")});
    EXPECT_EQ(support::ReadFile(Path("a")), expected_);
    EXPECT_EQ(support::ReadFile(Path("b")), expected_);
    ASSERT_THAT(support::FileNames(Folder()), SizeIs(1)) << "round " << round;
    EXPECT_THAT(ExpectText().error, Not(HasSubstr("packing")));
  }
}

TEST_F(PackCrash, TwoPackersOfOneFile) {
  const std::string pack =
      Quote({CRIA_PROGRAM, "pack", "-m", ModelPath(), "-o", Path("cache") + "/file", "-t", "1"}) +
      ">/dev/null";
  fs::create_directory(Folder());
  for (int round = 0; round < 5; ++round) {
    fs::remove(Folder() + "/file");
    ExpectAllSucceed({pack, pack});
    ASSERT_THAT(support::FileNames(Folder()), ElementsAre("file")) << "round " << round;
    ExpectText({"--packed", Folder() + "/file"});
  }
}

TEST_F(PackCrash, RunsGoOnWhileTheFileIsReplaced) {
  fs::create_directory(Folder());
  const std::string file = Folder() + "/file";
  const std::vector<std::string> pack = {CRIA_PROGRAM, "pack", "-m", ModelPath(), "-o", file};
  ASSERT_EQ(RunProgram(pack).exit_code, 0);
  const std::string run = Quote(RunArguments({"--packed", file, "-t", "1"}));
  std::string runs = "{ ";
  for (int i = 0; i < 5; ++i) runs += run + ">" + Path(std::format("text{}", i)) + " && ";
  const std::string replace = "{ for i in 1 2 3 4 5; do " + Quote(pack) + " || exit 1; done; }";
  ExpectAllSucceed({runs + "true; }", replace + " >/dev/null"});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(support::ReadFile(Path(std::format("text{}", i))), expected_);
  }
  EXPECT_THAT(support::FileNames(Folder()), ElementsAre("file"));
}

TEST_F(PackCrash, InterruptingEndsWithAnErrorAndLeavesNothing) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{CRIA_PROGRAM, "pack", "-m", ModelPath(), "--pack-cache", Folder(),
                                 "-t", "1"},
        RunArguments({"--pack-cache", Folder(), "-t", "1"})}) {
    int interrupted = 0;
    for (int round = 0; round < 10 && interrupted < 3; ++round) {
      fs::remove_all(Folder());
      const RunResult result = RunProgram(arguments, {.after_start = InterruptWhenWriting()});
      ASSERT_EQ(result.signal, 0) << result.error;
      EXPECT_EQ(Leftovers(), 0u);
      // All was packed when the signal came.
      if (support::FileNames(Folder()).size() == 1) continue;
      ++interrupted;
      ExpectError(result, 1, "packing was stopped");
      EXPECT_THAT(result.output, IsEmpty());
      EXPECT_THAT(support::FileNames(Folder()), IsEmpty());
    }
    EXPECT_GE(interrupted, 1) << arguments[1];
  }
}

}  // namespace
}  // namespace cria
