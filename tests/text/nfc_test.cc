#include "text/nfc.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include "core/utf8.h"

namespace cria {
namespace {

std::string InUtf8(char32_t code_point) {
  std::array<uint8_t, kMaxUtf8Bytes> bytes;
  const auto size = utf8proc_encode_char(static_cast<int32_t>(code_point), bytes.data());
  return {bytes.begin(), bytes.begin() + size};
}

std::string InUtf8(std::u32string_view text) {
  std::string bytes;
  for (const char32_t code_point : text) bytes += InUtf8(code_point);
  return bytes;
}

void ExpectNfc(std::u32string_view text, std::u32string_view expected) {
  EXPECT_EQ(NormalizeToNfc(InUtf8(text)), InUtf8(expected));
}

void ExpectUnchanged(std::string_view text) { EXPECT_EQ(NormalizeToNfc(std::string(text)), text); }

TEST(NfcTest, ComposesMarks) {
  ExpectNfc(U"e\u0301", U"\u00E9");
  ExpectNfc(U"cafe\u0301 au lait", U"caf\u00E9 au lait");
  // A mark without a letter before it, and one that does not compose.
  ExpectNfc(U"\u0301e", U"\u0301e");
  ExpectNfc(U"x\u0301", U"x\u0301");
  // A mark of the same class between them is in the way.
  ExpectNfc(U"e\u0313\u0301", U"e\u0313\u0301");
  // One composite takes part in another.
  ExpectNfc(U"a\u0302\u0301", U"\u1EA5");
  ExpectNfc(U"\u00E2\u0301", U"\u1EA5");
}

TEST(NfcTest, OrdersMarksByTheirClass) {
  // Dot below, class 220, comes before dot above and acute, class 230, which keep their order.
  ExpectNfc(U"q\u0307\u0323", U"q\u0323\u0307");
  ExpectNfc(U"q\u0301\u0307\u0323", U"q\u0323\u0301\u0307");
  ExpectNfc(U"s\u0307\u0323", U"\u1E69");
  ExpectNfc(U"\u1E0B\u0323", U"\u1E0D\u0307");
}

TEST(NfcTest, ReplacesSingletonsAndWhatIsExcluded) {
  ExpectNfc(U"\u212B", U"\u00C5");
  ExpectNfc(U"\u2126\u212A", U"\u03A9K");
  ExpectNfc(U"\u037E", U";");
  ExpectNfc(U"\uF900", U"\u8C48");
  // Devanagari qa has a composite that the form does not use; nor is there one of two marks.
  ExpectNfc(U"\u0958", U"\u0915\u093C");
  ExpectNfc(U"\u0344", U"\u0308\u0301");
  // Compatibility is no concern of it.
  ExpectNfc(U"\uFB01\u00B2", U"\uFB01\u00B2");
}

TEST(NfcTest, ComposesHangul) {
  ExpectNfc(U"\u1112\u1161\u11AB", U"\uD55C");
  ExpectNfc(U"\uD558\u11AB", U"\uD55C");
  ExpectNfc(U"\uD55C\u11AB", U"\uD55C\u11AB");
  ExpectNfc(U"\u1112\u1112\u1161", U"\u1112\uD558");
}

TEST(NfcTest, LeavesTextThatIsInTheForm) {
  ExpectUnchanged("");
  ExpectUnchanged("plain text");
  ExpectUnchanged("Grüße, ÀÿĀǍȀ");
  ExpectUnchanged("日本語 한국어 Ελληνικά русский 😀👩‍🚀");
  ExpectUnchanged(InUtf8(U"\u0000a\uFFFF\U0010FFFF\uE000"));
}

TEST(NfcTest, BytesThatAreNotUtf8StandBetween) {
  EXPECT_EQ(NormalizeToNfc("e\xFF\xCC\x81"), "e\xFF\xCC\x81");
  EXPECT_EQ(NormalizeToNfc("e\xCC\x81\xFF"), "\xC3\xA9\xFF");
  EXPECT_EQ(NormalizeToNfc("\xFFo\xCC\x88"), "\xFF\xC3\xB6");
  EXPECT_EQ(NormalizeToNfc("e\xCC"), "e\xCC");
  EXPECT_EQ(NormalizeToNfc("\xED\xA0\x80"
                           "e\xCC\x81\xE2\x84\xAB\xE2\x84"),
            "\xED\xA0\x80\xC3\xA9\xC3\x85\xE2\x84");
  EXPECT_EQ(NormalizeToNfc("\xF8\xF9"), "\xF8\xF9");
}

// utf8proc's own way over the whole text.
std::string NaiveNfc(std::string_view text) {
  uint8_t* mapped = nullptr;
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto size = utf8proc_map(reinterpret_cast<const uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &mapped, kOptions);
  EXPECT_GE(size, 0);
  std::string normalized(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return normalized;
}

TEST(NfcTest, EveryCodePointBesideOthersIsAsTheNaiveWayHasIt) {
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    const std::string one = InUtf8(code_point);
    // A base and a mark around it, vowels of Hangul and of Bengali, a lasting ideograph.
    const std::string text = "e" + one + "\xCC\x81 \xEA\xB0\x80" + one +
                             "\xE1\x86\xA8\xE0\xA7\x87" + one + "\xE4\xB8\x80";
    ASSERT_EQ(NormalizeToNfc(text), NaiveNfc(text)) << static_cast<uint32_t>(code_point);
  }
}

TEST(NfcTest, RandomTextIsAsTheNaiveWayHasIt) {
  constexpr std::array<std::u32string_view, 24> kParts = {
      U"a",      U"e",      U" ",      U"\u0301", U"\u0323", U"\u0307", U"\u0345", U"\u00E9",
      U"\u1112", U"\u1161", U"\u11AB", U"\uD558", U"\u4E00", U"\u212B", U"\u0958", U"\u093C",
      U"\u09C7", U"\u09BE", U"\u3099", U"\u304B", U"\u1F82", U"\u0344", U"\uFB1D", U"\U0001D15E"};
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t i = random() % 12; i > 0; --i) text += InUtf8(kParts[random() % kParts.size()]);
    ASSERT_EQ(NormalizeToNfc(text), NaiveNfc(text));
  }
}

TEST(NfcTest, LongRunsOfMarksTakeNoQuadraticTime) {
  std::string text = "e";
  constexpr int kMarks = 1 << 18;
  for (int i = 0; i < kMarks; ++i) text += "\xCC\x81\xCC\xA3";
  const std::string normalized = NormalizeToNfc(text);
  // U+1EB9, the other dots below, then all acutes.
  EXPECT_EQ(normalized.size(), 3 + 2 * (2 * size_t{kMarks} - 1));
  EXPECT_EQ(normalized.substr(0, 5), "\xE1\xBA\xB9\xCC\xA3");
  EXPECT_EQ(normalized.substr(normalized.size() - 2), "\xCC\x81");
}

}  // namespace
}  // namespace cria
