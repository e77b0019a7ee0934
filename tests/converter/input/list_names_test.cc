#include "converter/input/list_names.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace cria {
namespace {

TEST(ListNamesTest, TheLastTwoAreJoinedByAnd) {
  struct Row {
    int number;
    std::string_view name;
  };
  EXPECT_EQ(ListNames(std::array{Row{1, "llama"}}, &Row::name), "llama");
  EXPECT_EQ(ListNames(std::array{Row{1, "llama"}, Row{2, "qwen2"}}, &Row::name), "llama and qwen2");
  EXPECT_EQ(ListNames(std::array{Row{1, "llama"}, Row{2, "qwen2"}, Row{3, "qwen3"}}, &Row::name),
            "llama, qwen2 and qwen3");
}

}  // namespace
}  // namespace cria
