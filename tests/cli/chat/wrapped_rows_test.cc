#include "cli/chat/wrapped_rows.h"

#include <gtest/gtest.h>

#include <clocale>
#include <string>

namespace cria::cli {
namespace {

TEST(WrappedRows, ALineIsWrappedAtTheNewWidth) {
  EXPECT_EQ(RowAfterResize(L"", 80, 30), 0);
  EXPECT_EQ(RowAfterResize(L"> abc", 80, 30), 0);
  EXPECT_EQ(RowAfterResize(std::wstring(29, L'a'), 80, 30), 0);
  EXPECT_EQ(RowAfterResize(std::wstring(30, L'a'), 80, 30), 1);  // The cursor is on the next row.
  EXPECT_EQ(RowAfterResize(std::wstring(65, L'a'), 80, 30), 2);
  EXPECT_EQ(RowAfterResize(std::wstring(65, L'a'), 30, 80), 0);
}

TEST(WrappedRows, ALineFeedBeginsARow) {
  EXPECT_EQ(RowAfterResize(L"a\nb", 80, 30), 1);
  EXPECT_EQ(RowAfterResize(L"a\n\n", 80, 30), 2);
  EXPECT_EQ(RowAfterResize(std::wstring(45, L'a') + L"\nb", 80, 30), 2);
}

TEST(WrappedRows, ARowThatEndsWithASpaceIsALineOfItsOwn) {
  const std::wstring text = std::wstring(29, L'a') + L" " + std::wstring(10, L'b');
  EXPECT_EQ(RowAfterResize(text, 30, 80), 1);
  EXPECT_EQ(RowAfterResize(text, 80, 30), 1);
  EXPECT_EQ(RowAfterResize(std::wstring(30, L'a') + L" b", 30, 80), 0);
}

TEST(WrappedRows, WideCharactersTakeTwoColumns) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  EXPECT_EQ(RowAfterResize(std::wstring(16, L'\u4f60'), 80, 30), 1);
  EXPECT_EQ(RowAfterResize(std::wstring(14, L'\u4f60'), 80, 30), 0);
}

TEST(WrappedRows, AnUnknownWidthIsOneRow) { EXPECT_EQ(RowAfterResize(L"abc", 0, 0), 0); }

}  // namespace
}  // namespace cria::cli
