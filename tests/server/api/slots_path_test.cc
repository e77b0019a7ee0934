// GET /slots, POST /slots/{id}

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/api/api_fixture.h"
#include "support/files.h"

namespace cria::server {
namespace {

using SlotsPathTest = ApiTest;

TEST_F(SlotsPathTest, ListsSlots) {
  Json slots = Get("/slots")->json();
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0]["n_tokens"], 0);
  const Json usage = Post("/v1/chat/completions", Chat("Who?", 9))->json()["usage"];
  slots = Get("/slots")->json();
  EXPECT_EQ(slots[0]["n_tokens"], usage["total_tokens"]);
  EXPECT_EQ(slots[0]["is_processing"], false);
}

TEST_F(SlotsPathTest, SavesErasesAndRestores) {
  const Json first = Post("/v1/chat/completions", Chat("Who?", 9))->json()["usage"];
  const Json name = {{"filename", "one.session"}};
  const Json saved = Post("/slots/0", name, "action=save")->json();
  EXPECT_EQ(saved["n_saved"], first["total_tokens"]);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "one.session"));
  EXPECT_EQ(Post("/slots/0", {}, "action=erase")->json()["n_erased"], first["total_tokens"]);
  EXPECT_EQ(Get("/slots")->json()[0]["n_tokens"], 0);
  const auto cached = [&] {
    const Json usage = Post("/v1/chat/completions", Chat("Who?", 9))->json()["usage"];
    return usage["prompt_tokens_details"]["cached_tokens"].get<int>();
  };
  EXPECT_EQ(cached(), 0);
  EXPECT_EQ(Post("/slots/0", {}, "action=erase")->status, 200);
  EXPECT_EQ(Post("/slots/1", {}, "action=erase")->status, 200);
  EXPECT_EQ(Post("/slots/1", name, "x=1&action=restore")->json()["n_restored"],
            first["total_tokens"]);
  EXPECT_EQ(cached(), first["prompt_tokens"].get<int>() - 1);
}

TEST_F(SlotsPathTest, NamesCannotLeaveTheFolder) {
  for (const char* name :
       {"", ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", ".hidden", "a..b", "a b", "a\nb"}) {
    const auto answer = Post("/slots/0", {{"filename", name}}, "action=save");
    EXPECT_EQ(answer->status, 400) << name;
    EXPECT_EQ(answer->json()["error"]["param"], "filename");
  }
  EXPECT_EQ(Post("/slots/0", {{"filename", std::string(201, 'a')}}, "action=save")->status, 400);
  EXPECT_EQ(Post("/slots/0", {{"filename", 5}}, "action=save")->status, 400);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SlotsPathTest, RefusesLinksAndWhatIsNoFile) {
  const std::filesystem::path target = folder_.path() / "target";
  std::ofstream(target) << "something else";
  std::filesystem::create_symlink(target, folder_.path() / "link");
  std::filesystem::create_symlink("nowhere", folder_.path() / "dangling");
  std::filesystem::create_directory(folder_.path() / "folder");
  for (const char* const name : {"link", "dangling", "folder"}) {
    for (const char* const action : {"action=save", "action=restore"}) {
      const auto answer = Post("/slots/0", {{"filename", name}}, action);
      EXPECT_EQ(answer->status, 400) << name << " " << action;
      EXPECT_EQ(answer->json()["error"]["param"], "filename");
    }
  }
  EXPECT_EQ(support::ReadFile(target), "something else");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "nowhere"));
}

TEST_F(SlotsPathTest, ErrorsDoNotTellWhereTheFolderIs) {
  std::ofstream(folder_.path() / "damaged") << "no session";
  const Json answer = Post("/slots/0", {{"filename", "damaged"}}, "action=restore")->json();
  const auto message = answer["error"]["message"].get<std::string>();
  EXPECT_THAT(message, testing::HasSubstr("damaged: "));
  EXPECT_THAT(message, testing::Not(testing::HasSubstr(folder_.path())));
}

TEST_F(SlotsPathTest, RefusesWhatDoesNotExist) {
  const Json name = {{"filename", "none"}};
  EXPECT_EQ(Post("/slots/0", name, "action=restore")->status, 404);
  EXPECT_EQ(Post("/slots/2", name, "action=save")->status, 404);
  EXPECT_EQ(Post("/slots/-1", name, "action=save")->status, 404);
  EXPECT_EQ(Post("/slots/x", name, "action=save")->status, 404);
  EXPECT_EQ(Post("/slots/0", name, "")->status, 400);
  EXPECT_EQ(Post("/slots/0", name, "action=drop")->status, 400);
}

}  // namespace
}  // namespace cria::server
