#include "server/answers/section_text.h"

#include <gtest/gtest.h>

namespace cria::server {
namespace {

// Behind 10 tokens: "ab", "", "cde", and "f" of no token.
SectionText SomeText() {
  SectionText text;
  text.Begin(10);
  text.AddToken("ab");
  text.AddToken("");
  text.AddToken("cde");
  text.AddRest("f");
  return text;
}

TEST(SectionTextTest, KnowsItsTextAndTokens) {
  const SectionText text = SomeText();
  EXPECT_EQ(text.text(), "abcdef");
  EXPECT_EQ(text.end_tokens(), 13u);
}

TEST(SectionTextTest, IsCutBetweenTokensOrInside) {
  const SectionText text = SomeText();
  struct Case {
    size_t place, context_tokens, kept, dropped;
    const char* rest;
  };
  for (const Case& c : {Case{0, 13, 10, 3, ""}, Case{1, 13, 10, 3, "a"}, Case{2, 13, 12, 1, ""},
                        Case{4, 13, 12, 1, "cd"}, Case{5, 13, 13, 0, ""}, Case{6, 13, 13, 0, "f"},
                        // The context was full before the last token, and before two.
                        Case{5, 12, 12, 1, "cde"}, Case{5, 11, 11, 2, "cde"}}) {
    const SectionText::Cut cut = text.CutAt(c.place, c.context_tokens);
    EXPECT_EQ(cut.context_tokens, c.kept) << c.place << ", " << c.context_tokens;
    EXPECT_EQ(cut.dropped_tokens, c.dropped) << c.place << ", " << c.context_tokens;
    EXPECT_EQ(cut.rest, c.rest) << c.place << ", " << c.context_tokens;
  }
}

TEST(SectionTextTest, GoesOnFromATokenThatHasAPlaceInside) {
  SectionText text = SomeText();
  EXPECT_EQ(text.BeginAt(4), 2u);
  EXPECT_EQ(text.text(), "cdef");
  EXPECT_EQ(text.end_tokens(), 13u);
  EXPECT_EQ(text.CutAt(3, 13).context_tokens, 13u);
  EXPECT_EQ(text.BeginAt(3), 0u);
  EXPECT_EQ(text.text(), "f");
  text.Begin(20);
  EXPECT_EQ(text.text(), "");
  EXPECT_EQ(text.end_tokens(), 20u);
}

}  // namespace
}  // namespace cria::server
