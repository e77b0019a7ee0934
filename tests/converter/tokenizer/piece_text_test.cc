#include "converter/tokenizer/piece_text.h"

#include <gtest/gtest.h>

namespace cria {
namespace {

TEST(PieceTextTest, EveryByteHasOneName) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = BytePieceName(static_cast<uint8_t>(byte));
    ASSERT_EQ(name.size(), 6u);
    EXPECT_EQ(ByteOfPieceName(name), static_cast<uint8_t>(byte)) << name;
  }
  EXPECT_EQ(BytePieceName(0x0a), "<0x0A>");
  for (const char* text : {"", "<0x0a>", "<0X0A>", "<0x0A", "<0xA>", "<0x0AB>", "<0x0G>", "<0x+A>",
                           "<0x A>", "0x0A", "<unk>", "<0x0A>>"}) {
    EXPECT_FALSE(ByteOfPieceName(text)) << text;
  }
}

TEST(PieceTextTest, VisibleSpacesBecomeSpaces) {
  EXPECT_EQ(WithPlainSpaces("\u2581a\u2581\u2581b"), " a  b");
  EXPECT_EQ(WithPlainSpaces(""), "");
  EXPECT_EQ(WithPlainSpaces("\u2582"), "\u2582");
}

}  // namespace
}  // namespace cria
