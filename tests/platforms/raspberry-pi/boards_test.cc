#include "raspberry-pi/boards.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/mebibyte.h"

namespace cria::raspberry_pi {
namespace {

using support::kMebibyte;

TEST(BoardsTest, NamesAreUniqueAndFindTheirBoard) {
  std::set<std::string_view> names;
  std::set<std::string_view> titles;
  for (const Board& board : Boards()) {
    EXPECT_TRUE(names.insert(board.name).second) << board.name;
    EXPECT_TRUE(titles.insert(board.title).second) << board.title;
    EXPECT_EQ(FindBoard(board.name), &board);
    EXPECT_EQ(board.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              board.name.npos)
        << board.name;
  }
  EXPECT_GE(names.size(), 10u);
}

TEST(BoardsTest, UnknownNamesFindNothing) {
  for (const std::string_view name : {"", "pi", "pi-4", "PI-4-2GB", "pi-4-2gb ", "pi-4-3gb"}) {
    EXPECT_EQ(FindBoard(name), nullptr) << name;
  }
}

TEST(BoardsTest, TitlesTellTheMemory) {
  for (const Board& board : Boards()) {
    const uint64_t mebibytes = board.memory_bytes / kMebibyte;
    const std::string size = mebibytes < 1024 ? std::to_string(mebibytes) + " MB"
                                              : std::to_string(mebibytes / 1024) + " GB";
    EXPECT_TRUE(board.title.ends_with(", " + size)) << board.title;
  }
}

TEST(BoardsTest, ProgramsGetLessThanTheMemoryButMostOfALargeOne) {
  for (const Board& board : Boards()) {
    SCOPED_TRACE(board.name);
    EXPECT_EQ(board.memory_bytes % (256 * kMebibyte), 0u);
    EXPECT_GE(board.usable_bytes, 192 * kMebibyte);
    // Firmware, kernel and services take at least this much.
    EXPECT_LE(board.usable_bytes + 200 * kMebibyte, board.memory_bytes);
    if (board.memory_bytes >= 2048 * kMebibyte) {
      EXPECT_GE(board.usable_bytes, board.memory_bytes / 4 * 3);
    }
  }
}

// `MemAvailable` of real boards after booting Raspberry Pi OS Lite, in MiB.
TEST(BoardsTest, UsableMemoryIsNoMoreThanWasSeen) {
  EXPECT_LE(FindBoard("pi-zero-2w")->usable_bytes, 291 * kMebibyte);
  EXPECT_LE(FindBoard("pi-3")->usable_bytes, 822 * kMebibyte);
}

TEST(BoardsTest, MoreMemoryAndLaterCoresAreNeverWorse) {
  for (const Board& one : Boards()) {
    for (const Board& other : Boards()) {
      if (one.memory_bytes < other.memory_bytes) {
        EXPECT_LT(one.usable_bytes, other.usable_bytes) << one.name << " " << other.name;
      }
      if (one.core < other.core) {  // Cortex-A53, A72, A76.
        EXPECT_LT(one.read_bandwidth_gb_s, other.read_bandwidth_gb_s);
      }
    }
    EXPECT_EQ(one.num_cores, 4u);
    EXPECT_TRUE(one.core.starts_with("Cortex-A"));
    EXPECT_GT(one.read_bandwidth_gb_s, 1.0);
    EXPECT_LT(one.read_bandwidth_gb_s, 20.0);
  }
}

}  // namespace
}  // namespace cria::raspberry_pi
