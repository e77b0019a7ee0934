// A user who gives cria the name of a model that is not there yet.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/models/store_fixture.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/sleeping_thread.h"
#include "support/terminal_program.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

using support::HttpRequest;
using support::HttpResponse;
using support::RunResult;
using support::TerminalProgram;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class ChatByName : public tests::StoreTest {
 protected:
  std::string Gguf() {
    const fs::path path = folder_ / "work" / "own.gguf";
    return support::WriteGguf(support::MakeModel(support::SpecGqa()), support::StorageType::kF32,
                              path);
  }
  TerminalProgram AtTerminal(const std::string& model) {
    return TerminalProgram(
        {support::kCriaProgram, "chat", "-m", model, "--temp", "0", "-n", "4", "-t", "1"},
        {.environment = Environment(), .working_directory = folder_ / "work"});
  }
};

TEST_F(ChatByName, OneCommandFromAnEmptyHomeToTheAnswer) {
  const RunResult first = Chat(name_);
  EXPECT_EQ(first.exit_code, 0) << first.error;
  EXPECT_EQ(first.output, Answer());
  EXPECT_THAT(first.error, AllOf(HasSubstr(name_ + " becomes a model in " + Store().string()),
                                 HasSubstr("licence apache-2.0"), HasSubstr("  convert   "),
                                 HasSubstr("  memory    ")));
  ExpectOneEntry();
  EXPECT_THAT(support::FileNames(Store() / ".downloads"), IsEmpty());
  // From now on without the hub, and at once.
  is_offline_ = true;
  const size_t requests = hub_.requests().size();
  const RunResult second = Chat(name_, {});
  EXPECT_EQ(second.exit_code, 0) << second.error;
  EXPECT_EQ(second.output, first.output);
  EXPECT_EQ(second.error, "");
  EXPECT_EQ(hub_.requests().size(), requests);
  for (const char* other : {"tiny-llama", "hf:tiny-org/tiny-llama"}) {
    EXPECT_EQ(Chat(other, {}).output, first.output) << other;
  }
  EXPECT_EQ(Run({"chat", "-p", "abc", "-n", "4", "--temp", "0", "-q"},
                {.environment = {"CRIA_MODEL=" + name_}})
                .output,
            first.output);
}

TEST_F(ChatByName, EveryCommandTakesTheName) {
  ASSERT_EQ(Run({"pull", name_}).exit_code, 0);
  is_offline_ = true;
  support::WriteFile(folder_ / "work" / "text.txt", "abcabcabc abc abc");
  EXPECT_EQ(Run({"run", "-m", name_, "-p", "abc", "-n", "2"}).exit_code, 0);
  EXPECT_EQ(Run({"bench", "-m", name_, "-p", "4", "-n", "2", "-r", "1"}).exit_code, 0);
  EXPECT_EQ(Run({"eval", "-m", name_, "-f", "text.txt", "-c", "64"}).exit_code, 0);
  const RunResult plan = Run({"plan", "-m", name_, "--serve", "-np", "2"});
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
}

TEST_F(ChatByName, APlanComesBeforeTheDownload) {
  for (const std::vector<std::string>& option : std::vector<std::vector<std::string>>{
           {"--serve"}, {"--draft-ngram", "2"}, {"--json-schema", "{}"}}) {
    std::vector<std::string> arguments = {"plan", "-m", name_};
    arguments.insert(arguments.end(), option.begin(), option.end());
    ExpectSentence(Run(arguments), 2, "are planned for a model that is there: cria pull hf:");
  }
  const RunResult plan = Run({"plan", "-m", name_, "-c", "64", "--json"});
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  EXPECT_THAT(plan.output, AllOf(HasSubstr("\"context_tokens\": 64"), HasSubstr("peak_bytes")));
  EXPECT_EQ(hub_.NumRequests("safetensors"), 0u);
  EXPECT_THAT(Entries(), IsEmpty());
}

TEST_F(ChatByName, WhereNobodyCanBeAskedItSaysSo) {
  ExpectSentence(Chat(name_, {}), 2,
                 "there is no terminal to ask at; -y downloads and converts it");
  ExpectSentence(Chat(Gguf(), {}), 2, "-y converts it, and so does cria pull");
  EXPECT_THAT(hub_.requests(), IsEmpty());
}

TEST_F(ChatByName, AtATerminalItAsksOnce) {
  {
    TerminalProgram refused = AtTerminal(name_);
    ASSERT_TRUE(refused.WaitFor("Go on? [Y/n]")) << refused.Screen();
    EXPECT_THAT(refused.Screen(), HasSubstr("licence apache-2.0"));
    refused.Type("n\r");
    EXPECT_EQ(refused.WaitForEnd(), 130);
    EXPECT_THAT(refused.Screen(), HasSubstr("nothing was downloaded or converted"));
    EXPECT_THAT(Entries(), IsEmpty());
  }
  TerminalProgram agreed = AtTerminal(name_);
  ASSERT_TRUE(agreed.WaitFor("Go on? [Y/n]")) << agreed.Screen();
  agreed.Type("\r");
  EXPECT_TRUE(agreed.WaitFor("/help lists the commands")) << agreed.Screen();
  ExpectOneEntry();
}

TEST_F(ChatByName, AGgufFileOfOnesOwn) {
  const std::string gguf = Gguf();
  const RunResult first = Chat(gguf);
  EXPECT_EQ(first.exit_code, 0) << first.error;
  EXPECT_FALSE(first.output.empty());
  ExpectOneEntry();
  EXPECT_EQ(Chat("own.gguf", {}).output, first.output);
  EXPECT_EQ(Chat("own", {}).output, first.output);
  // A file that changed is another one.
  fs::last_write_time(gguf, fs::last_write_time(gguf) - std::chrono::hours(1));
  EXPECT_EQ(Chat(gguf, {}).exit_code, 2);
  EXPECT_THAT(hub_.requests(), IsEmpty());
}

TEST_F(ChatByName, AFolderOfACheckpoint) {
  const RunResult first = Chat(folder_ / "tiny-llama");
  EXPECT_EQ(first.exit_code, 0) << first.error;
  EXPECT_EQ(first.output, Answer());
  ExpectOneEntry();
}

TEST_F(ChatByName, AGgufFileOfTheHub) {
  hub_.files["Q4/own.gguf"] = support::ReadFile(Gguf());
  const RunResult first = Chat(name_ + ":Q4/own.gguf");
  EXPECT_EQ(first.exit_code, 0) << first.error;
  EXPECT_EQ(Chat(name_ + "/Q4/own.gguf", {}).output, first.output);
  ExpectOneEntry();
}

TEST_F(ChatByName, WrongNamesHaveProposals) {
  ExpectSentence(Chat("smollm2-153m"), 1, "the nearest is smollm2-135m");
  ExpectSentence(Chat("tiny-org/tiny-llama"), 1, "written hf:tiny-org/tiny-llama");
  ExpectSentence(Chat("hf:tiny-llama"), 2, "hf:ORG/NAME");
  ExpectSentence(Chat("missing.cria"), 1, "missing.cria");
  const RunResult absent = Chat("hf:tiny-org/absent");
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_THAT(absent.error, AllOf(HasSubstr("cria-convert: error: hf:tiny-org/absent"),
                                  HasSubstr("there is no model")));
  EXPECT_THAT(Entries(), IsEmpty());
  ASSERT_EQ(Run({"pull", name_}).exit_code, 0);
  ExpectSentence(Run({"rm", "tiny-lama"}), 1, "the nearest is tiny-llama");
}

TEST_F(ChatByName, AGatedModelIsRefusedAsByTheConverter) {
  hub_.token = "hf_right";
  hub_.gated = "manual";
  const RunResult refused = Chat(name_);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr("is a gated"));
  EXPECT_THAT(Entries(), IsEmpty());
  EXPECT_EQ(Chat(name_, {"-y"}, {.environment = {"HF_TOKEN=hf_right"}}).exit_code, 0);
}

TEST_F(ChatByName, TooLittleDiskIsSaidBeforeTheDownload) {
  hub_.change_api = [](const HttpRequest&, HttpResponse& response) {
    auto info = nlohmann::json::parse(response.body);
    for (auto& sibling : info["siblings"]) {
      if (sibling.contains("lfs")) sibling["lfs"]["size"] = 7'000'000'000'000'000'000;
    }
    response.body = info.dump();
  };
  const RunResult result = Chat(name_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("need 7000000000.00 GB, but only"), HasSubstr("CRIA_MODELS")));
  EXPECT_EQ(hub_.NumRequests("safetensors"), 0u);
  EXPECT_THAT(Entries(), IsEmpty());
}

TEST_F(ChatByName, AStoreThatCannotBeWrittenIsNamed) {
  fs::create_directories(Store());
  fs::permissions(Store(), fs::perms::owner_read | fs::perms::owner_exec);
  ExpectSentence(Chat(name_, {"-y"}, {.permissions_hold = true}), 1,
                 "cannot create the folder: Permission denied; CRIA_MODELS names another");
  const std::string elsewhere = folder_ / "elsewhere";
  EXPECT_EQ(Chat(name_, {"-y"}, {.environment = {"CRIA_MODELS=" + elsewhere}}).exit_code, 0);
  EXPECT_THAT(support::FileNames(elsewhere), SizeIs(2));
  fs::permissions(Store(), fs::perms::owner_all);
}

TEST_F(ChatByName, WithoutTheConverterASentenceNamesItsPackage) {
  const fs::path alone = folder_ / "alone";
  fs::create_directory(alone);
  fs::copy_file(support::kCriaProgram, alone / "cria");
  std::vector<std::string> environment = Environment();
  environment.emplace_back("PATH=/nowhere");
  const RunResult result =
      support::RunProgram({(alone / "cria").string(), "chat", "-m", name_, "-y", "-p", "abc"},
                          {.environment = environment});
  ExpectSentence(result, 1, "apt install ./cria-convert_*.deb");
  EXPECT_THAT(Entries(), IsEmpty());
}

TEST_F(ChatByName, ModelsAreListedShownAndRemoved) {
  EXPECT_THAT(Run({"models"}).error, HasSubstr("cria models --known"));
  EXPECT_THAT(Run({"models", "--known"}).output,
              AllOf(HasSubstr("smollm2-135m"), HasSubstr("pi-zero-2w"), HasSubstr("llama3.2")));
  const RunResult pulled = Run({"pull", name_});
  ASSERT_EQ(pulled.exit_code, 0) << pulled.error;
  EXPECT_TRUE(fs::exists(pulled.output.substr(0, pulled.output.size() - 1))) << pulled.output;
  EXPECT_EQ(Run({"pull", name_}).output, pulled.output);
  EXPECT_THAT(Run({"models"}).output, AllOf(HasSubstr("tiny-llama"), HasSubstr(name_)));
  const auto list = nlohmann::json::parse(Run({"models", "--json"}).output);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["source"], name_);
  EXPECT_EQ(list[0]["licence"], "apache-2.0");
  EXPECT_EQ(list[0]["bytes"], fs::file_size(list[0]["path"].get<std::string>()));
  EXPECT_EQ(nlohmann::json::parse(Run({"show", "tiny-llama", "--json"}).output), list[0]);
  EXPECT_THAT(Run({"show", list[0]["id"].get<std::string>().substr(0, 8)}).output,
              HasSubstr("path"));
  const RunResult removed = Run({"rm", name_});
  EXPECT_EQ(removed.exit_code, 0) << removed.error;
  EXPECT_THAT(removed.output, HasSubstr("tiny-llama is removed"));
  EXPECT_THAT(Entries(), IsEmpty());
}

TEST_F(ChatByName, WhatAProgramUsesIsNotRemoved) {
  ASSERT_EQ(Run({"pull", name_}).exit_code, 0);
  {
    TerminalProgram chat = AtTerminal(name_);
    ASSERT_TRUE(chat.WaitFor("/help lists the commands")) << chat.Screen();
    ExpectSentence(Run({"rm", "tiny-llama"}), 2, "is used by a program; end that program first");
    ExpectOneEntry();
  }
  EXPECT_EQ(Run({"rm", "tiny-llama"}).exit_code, 0);
}

TEST_F(ChatByName, TwoAtOnceDoTheWorkOnce) {
  // The file is sent only after one of them waits for the other.
  hub_.change_file = [&](const HttpRequest& request, HttpResponse& response) {
    if (!request.target.starts_with("/storage/")) return;
    response.part_bytes = response.body.size() / 2;
    response.after_part = [&] {
      support::Await([&] {
        for (const char* name : {"1.err", "2.err"}) {
          const fs::path path = folder_ / "work" / name;
          if (fs::exists(path) && support::ReadFile(path).contains("waiting for another process")) {
            return true;
          }
        }
        return false;
      });
    };
  };
  const std::string command =
      std::string(support::kCriaProgram) + " chat -m " + name_ + " -y -p abc -n 4 --temp 0 -t 1 -q";
  const std::string script = "for i in 1 2; do " + command +
                             " >$i.out 2>$i.err & p=\"$p $!\"; done; s=0; "
                             "for i in $p; do wait $i || s=1; done; exit $s";
  const RunResult result =
      support::RunProgram({"/bin/sh", "-c", script},
                          {.environment = Environment(), .working_directory = folder_ / "work"});
  EXPECT_EQ(result.exit_code, 0) << support::ReadFile(folder_ / "work" / "1.err")
                                 << support::ReadFile(folder_ / "work" / "2.err");
  EXPECT_EQ(support::ReadFile(folder_ / "work" / "1.out"),
            support::ReadFile(folder_ / "work" / "2.out"));
  EXPECT_EQ(hub_.NumRequests("/storage/model.safetensors"), 1u);
  ExpectOneEntry();
}

}  // namespace
}  // namespace cria
