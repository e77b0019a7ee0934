// The table of paths in server/README.md is printed from the table of the code.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "server/api/api.h"
#include "support/files.h"
#include "support/paths.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

TEST(ApiPathTableTest, IsThatOfTheReadme) {
  EXPECT_THAT(support::ReadFile(support::SourcePath("server/README.md")),
              HasSubstr("\n" + ApiPathTable()))
      << "write this table into the page";
}

TEST(ApiPathTableTest, HasEachPathOnceBehindItsMethod) {
  const std::string table = ApiPathTable();
  size_t num_paths = 0;
  for (const std::string& route : ApiPaths()) {
    std::string path = route.substr(route.find(' ') + 1);
    if (path.ends_with('*')) path.replace(path.size() - 1, 1, "…");
    const bool has_method =
        table.contains("`" + route.substr(0, route.find(' ')) + " " + path + "`");
    EXPECT_TRUE(has_method || table.contains(", `" + path + "`")) << route;
    ++num_paths;
  }
  // Sentences have backticks, too, but no comma or bar before them and a slash behind.
  size_t num_cells = 0;
  for (const char* before : {"| `GET /", "| `POST /", ", `GET /", ", `POST /", ", `/"}) {
    for (size_t at = table.find(before); at != std::string::npos; at = table.find(before, at + 1)) {
      ++num_cells;
    }
  }
  EXPECT_EQ(num_cells, num_paths);
  EXPECT_THAT(table, HasSubstr("| `GET /v1/models`, `/v1/models/…`, `/models` | the models, "));
}

}  // namespace
}  // namespace cria::server
