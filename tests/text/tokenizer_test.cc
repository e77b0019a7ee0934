#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/test_vocabulary.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr EncodeOptions kPlain{.add_bos = false};
constexpr EncodeOptions kSpecial{.add_bos = false, .parse_special = true};

VocabularyDraft Hello() {
  return SentencePieceDraft(
      {" ", "h", "e", "l", "o", "ll", "he", " he", "llo", " hello", "é", "  "});
}

TEST(SentencePieceTokenizerTest, AddsBosAndDummyPrefix) {
  const TestTokenizer tokenizer(Hello());
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("hello")), "<s>| hello");
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("hello", kPlain)), " hello");
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("lohe", kPlain)), " |l|o|he");
  EXPECT_THAT(tokenizer.Encode(""), ElementsAre(kBos));
  EXPECT_THAT(tokenizer.Encode("", kPlain), IsEmpty());
}

TEST(SentencePieceTokenizerTest, MergesInTheOrderOfRanks) {
  // "ll" comes before "he", so that it is there for "llo"; "lo" is no piece.
  const TestTokenizer tokenizer(Hello());
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("lllo", kPlain)), " |ll|l|o");
}

TEST(SentencePieceTokenizerTest, VisibleSpacesAreSpaces) {
  const TestTokenizer tokenizer(Hello());
  EXPECT_EQ(tokenizer.Encode("he\xE2\x96\x81hello"), tokenizer.Encode("he hello"));
  // The prefix comes before spaces, too.
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode(" hello", kPlain)), " | hello");
}

TEST(SentencePieceTokenizerTest, UnknownCharactersBecomeTheirBytes) {
  const TestTokenizer tokenizer(Hello());
  EXPECT_EQ(tokenizer.Encode("é\xE2\x82\xAC", kPlain),
            (std::vector<int32_t>{kFirstText, kFirstText + 10, kFirstByte + 0xE2, kFirstByte + 0x82,
                                  kFirstByte + 0xAC}));
  // ASCII that has no piece, and bytes that are no character.
  EXPECT_EQ(
      tokenizer.Encode("x\xFF\xC3", kPlain),
      (std::vector<int32_t>{kFirstText, kFirstByte + 'x', kFirstByte + 0xFF, kFirstByte + 0xC3}));
}

TEST(SentencePieceTokenizerTest, OrOneUnknownTokenForAll) {
  VocabularyDraft draft = Hello();
  draft.rules.byte_fallback = false;
  const TestTokenizer tokenizer(draft);
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("hexy\xFFhe z", kPlain)), " he|<unk>|he| |<unk>");
}

TEST(SentencePieceTokenizerTest, WithoutAnUnknownTokenItIsLeftOut) {
  VocabularyDraft draft = Hello();
  draft.rules.byte_fallback = false;
  draft.rules.unk_token_id = -1;
  const TestTokenizer tokenizer(draft);
  // What is around it merges as neighbours.
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("hxe\u65E5y\xFFllo", kPlain)), " hello");
  EXPECT_THAT(tokenizer->LeftOut("hxe\u65E5x\xFFllo"), ElementsAre("x", "\u65E5", "\xFF"));
  EXPECT_THAT(tokenizer->LeftOut("hello"), IsEmpty());
  EXPECT_THAT(tokenizer->LeftOut("abcdfgijkm").size(), Tokenizer::kMaxLeftOut);
}

TEST(SentencePieceTokenizerTest, RemovesExtraSpaces) {
  VocabularyDraft draft = Hello();
  draft.rules.remove_extra_whitespaces = true;
  const TestTokenizer tokenizer(draft);
  EXPECT_EQ(tokenizer.Encode("  hello   he  "), tokenizer.Encode("hello he"));
  EXPECT_THAT(tokenizer.Encode("   ", kPlain), IsEmpty());
}

TEST(SentencePieceTokenizerTest, PiecesAcrossWordsAreFound) {
  // A piece with a space inside turns merging word by word off.
  const TestTokenizer tokenizer(SentencePieceDraft({" ", "a", "b", " a", "a ", "b a"}));
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("ab a", kPlain)), " a|b a");
}

TEST(SentencePieceTokenizerTest, ControlTokensAreOnlyReadWhereAllowed) {
  const TestTokenizer tokenizer(Hello());
  const std::vector<int32_t> as_text = tokenizer.Encode("<s>he", kPlain);
  EXPECT_THAT(as_text, testing::Not(testing::Contains(kBos)));
  EXPECT_THAT(tokenizer.Encode("<s>he", kSpecial), ElementsAre(kBos, kFirstText + 7));
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("he</s>he<unk>", kSpecial)).substr(0, 14),
            " he|</s>| he|<");
}

TEST(SentencePieceTokenizerTest, BosIsNotDoubled) {
  const TestTokenizer tokenizer(Hello());
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("<s>he", {.parse_special = true})), "<s>| he");
}

TEST(SentencePieceTokenizerTest, DummyPrefixAfterSpecialTokens) {
  VocabularyDraft draft = Hello();
  EXPECT_EQ(TestTokenizer(draft).Pieces(TestTokenizer(draft).Encode("he</s>he", kSpecial)),
            " he|</s>| he");
  draft.rules.dummy_prefix_after_special = false;
  const TestTokenizer once(draft);
  EXPECT_EQ(once.Pieces(once.Encode("he</s>he", kSpecial)), " he|</s>|he");
  EXPECT_EQ(once.Pieces(once.Encode("</s>he", kSpecial)), "</s>|he");
  draft.rules.add_dummy_prefix = false;
  const TestTokenizer never(draft);
  EXPECT_EQ(never.Pieces(never.Encode("he", kSpecial)), "he");
}

TEST(SentencePieceTokenizerTest, UserDefinedTokensAreAlwaysRead) {
  VocabularyDraft draft = Hello();
  ASSERT_TRUE(draft.AddToken({static_cast<uint32_t>(draft.pieces.size()), "<sep>", false}, ""));
  ASSERT_TRUE(draft.AddToken({static_cast<uint32_t>(draft.pieces.size()), "<sep2>", false}, ""));
  const TestTokenizer tokenizer(draft);
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("he<sep>he<sep2>", kPlain)), " he|<sep>| he|<sep2>");
}

TEST(TokenizerTest, SegmentsAreOneTextButTokensDoNotGrowTogether) {
  const TestTokenizer tokenizer(Hello());
  const TextSegment joined[] = {{"he"}, {"l"}, {"lo"}};
  EXPECT_EQ(tokenizer.Pieces(tokenizer->EncodeSegments(joined, false).value()), " hello");
  const TextSegment forged[] = {{"</", true}, {"s>", false}};
  EXPECT_THAT(tokenizer->EncodeSegments(forged, false).value(),
              testing::Not(testing::Contains(kEos)));
  const TextSegment mixed[] = {{"</s>", true}, {"</s>", false}};
  const auto ids = tokenizer->EncodeSegments(mixed, false).value();
  EXPECT_EQ(std::ranges::count(ids, kEos), 1);
  EXPECT_EQ(ids[0], kEos);
}

TEST(TokenizerTest, IdsOutsideTheVocabularyHaveNoPiece) {
  const TestTokenizer tokenizer(Hello());
  EXPECT_EQ(tokenizer->Piece(-1), "");
  EXPECT_EQ(tokenizer->Piece(1'000'000), "");
}

TEST(ByteLevelTokenizerTest, MergesInsideWords) {
  const TestTokenizer tokenizer(ByteLevelDraft({"ab", "abc", " ab", "c "}));
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("abc abc")), "abc| |abc");
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("c c")), "c| |c");
}

TEST(ByteLevelTokenizerTest, IgnoreMergesTakesWholeWords) {
  VocabularyDraft draft = ByteLevelDraft({"ab", " abc"});
  EXPECT_EQ(TestTokenizer(draft).Pieces(TestTokenizer(draft).Encode(" abc")), " |ab|c");
  draft.rules.ignore_merges = true;
  const TestTokenizer whole(draft);
  EXPECT_EQ(whole.Pieces(whole.Encode(" abc abcd")), " abc| |ab|c|d");
}

TEST(ByteLevelTokenizerTest, EveryByteComesBack) {
  const TestTokenizer tokenizer(ByteLevelDraft({"ab", "\xC3\xA9", " \xE6\x97"}));
  std::mt19937 random(4);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = RandomText(random, true);
    std::string back;
    for (const int32_t id : tokenizer.Encode(text)) back += tokenizer->Piece(id);
    EXPECT_EQ(back, text);
  }
}

// As in SmolLM2's vocabulary, which lacks eight bytes.
TEST(ByteLevelTokenizerTest, AByteWithoutATokenIsLeftOut) {
  VocabularyDraft draft = ByteLevelDraft({"ab", "\x04\x04"});
  draft.pieces['\x04'] = {};
  draft.pieces['x'] = {};
  const TestTokenizer tokenizer(draft);
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("a\x04"
                                              "bc")),
            "a|b|c");
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("axb")), "ab");
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("x<s>\x04", {.parse_special = true})), "<s>");
  EXPECT_THAT(tokenizer.Encode("\x04x\x04"), IsEmpty());
  EXPECT_THAT(tokenizer->LeftOut("a\x04"
                                 "bx\x04"),
              ElementsAre("\x04", "x"));
  EXPECT_THAT(tokenizer->LeftOut("abc"), IsEmpty());
  // A word that is a token needs no tokens of its bytes.
  draft.rules.ignore_merges = true;
  draft.split_patterns = {"\x04+"};
  const TestTokenizer whole(draft);
  EXPECT_EQ(whole.Pieces(whole.Encode("a\x04\x04"
                                      "b\x04")),
            "a|\x04\x04|b");
  EXPECT_THAT(whole->LeftOut("a\x04\x04"), IsEmpty());
  EXPECT_THAT(whole->LeftOut("a\x04\x04"
                             "b\x04"),
              ElementsAre("\x04"));
}

TEST(TokenizerTest, NormalizesToNfc) {
  VocabularyDraft draft = ByteLevelDraft({"\u00E9", "\u0301", "\uD55C"});
  const TestTokenizer as_given(draft);
  EXPECT_EQ(as_given.Pieces(as_given.Encode("e\u0301")), "e|\u0301");
  draft.rules.normalize_nfc = true;
  const TestTokenizer tokenizer(draft);
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("e\u0301")), "\u00E9");
  EXPECT_EQ(tokenizer.Encode("e\u0301 \u1112\u1161\u11AB"), tokenizer.Encode("\u00E9 \uD55C"));
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("e\xFF\u0301")), "e|\xFF|\u0301");
  // Segments are one text.
  const TextSegment joined[] = {{"e"}, {"\u0301"}};
  EXPECT_EQ(tokenizer.Pieces(tokenizer->EncodeSegments(joined, false).value()), "\u00E9");

  VocabularyDraft sentences = SentencePieceDraft({" ", "e", "\u00E9", " \u00E9"});
  sentences.rules.normalize_nfc = true;
  const TestTokenizer sentence(sentences);
  EXPECT_EQ(sentence.Pieces(sentence.Encode("e\u0301", kPlain)), " \u00E9");
}

TEST(SentencePieceTokenizerTest, NoPrefixWhereThereIsASpace) {
  VocabularyDraft draft = SentencePieceDraft({" ", "a", " a", "  "});
  const TestTokenizer always(draft);
  EXPECT_EQ(always.Pieces(always.Encode(" a", kPlain)), " | a");
  draft.rules.dummy_prefix_unless_space = true;
  const TestTokenizer unless(draft);
  EXPECT_EQ(unless.Pieces(unless.Encode("a", kPlain)), " a");
  EXPECT_EQ(unless.Pieces(unless.Encode(" a", kPlain)), " a");
  EXPECT_EQ(unless.Pieces(unless.Encode("\u2581a", kPlain)), " a");
  EXPECT_EQ(unless.Pieces(unless.Encode("  a", kPlain)), " | a");
  EXPECT_EQ(unless.Pieces(unless.Encode(" ", kPlain)), " ");
  EXPECT_EQ(unless.Pieces(unless.Encode("", kPlain)), "");
  EXPECT_EQ(unless.Pieces(unless.Encode(" a</s>a</s> a", kSpecial)), " a|</s>| a|</s>| a");
  draft.rules.dummy_prefix_after_special = false;
  const TestTokenizer first(draft);
  EXPECT_EQ(first.Pieces(first.Encode("a</s>a</s> a", kSpecial)), " a|</s>|a|</s>| a");
}

TEST(TokenizerTest, TokensMayTakeTheWhiteSpaceAfterThem) {
  VocabularyDraft draft = ByteLevelDraft({"\n\n"});
  const auto tool = static_cast<uint32_t>(draft.pieces.size());
  ASSERT_TRUE(draft.AddToken({.id = tool, .content = "<tool>", .rstrip = true}, ""));
  ASSERT_TRUE(
      draft.AddToken({.id = tool + 1, .content = "<end>", .special = true, .rstrip = true}, ""));
  const TestTokenizer tokenizer(draft);
  const auto pieces = [&](std::string_view text) {
    return tokenizer.Pieces(tokenizer.Encode(text, kSpecial));
  };
  EXPECT_EQ(pieces("a<end>\n\n \u00A0\u3000b"), "a|<end>|b");
  EXPECT_EQ(pieces("<end> \n<tool>\t</s>\n\n"), "<end>|<tool>|</s>|\n\n");
  EXPECT_EQ(pieces("<end>\x1C"), "<end>|\x1C");
  EXPECT_EQ(pieces("\n\n<end>"), "\n\n|<end>");
  // Text of users is searched for user-defined tokens only.
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("<tool>\n\na", kPlain)), "<tool>|a");
  // White space may begin in another segment, and go on in a third.
  const TextSegment segments[] = {{"<end>", true}, {"\n", true}, {" \nb\n\n", false}};
  const auto ids = tokenizer->EncodeSegments(segments, false);
  ASSERT_TRUE(ids);
  EXPECT_EQ(tokenizer.Pieces(*ids), "<end>|b|\n\n");
  // Such text is not too long because of its white space.
  EXPECT_EQ(tokenizer
                ->Encode("<end>" + std::string(1000, ' '),
                         {.add_bos = false, .parse_special = true, .max_tokens = 1})
                .value()
                .size(),
            1u);
}

TEST(TokenizerTest, MarksDoNotComposeWithSpecialTokens) {
  // ">" and U+0338 would be U+226F.
  VocabularyDraft draft = ByteLevelDraft({"\u0338", "\u00E9", "\u226F"});
  ASSERT_TRUE(draft.AddToken({static_cast<uint32_t>(draft.pieces.size()), "e", false}, ""));
  draft.rules.normalize_nfc = true;
  const TestTokenizer tokenizer(draft);
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("</s>\u0338", kSpecial)), "</s>|\u0338");
  EXPECT_EQ(tokenizer.Pieces(tokenizer.Encode("ae\u0301", kSpecial)), "a|e|\xCC|\x81");
  // Nor does composing make one.
  EXPECT_THAT(tokenizer.Encode("\u226F</s\u226F", kSpecial),
              testing::Not(testing::Contains(tokenizer.Encode("</s>", kSpecial).front())));
}

TEST(TokenizerTest, AWrongSplitPatternIsAnError) {
  VocabularyDraft draft = ByteLevelDraft({});
  draft.split_patterns = {"["};
  const OwnedVocabulary vocabulary = BuildVocabulary(draft, draft.pieces.size()).value();
  EXPECT_FALSE(Tokenizer::Create(vocabulary.view()));
}

TEST(TokenizerTest, MovingKeepsItWorking) {
  const OwnedVocabulary vocabulary = BuildVocabulary(Hello(), 300).value();
  Tokenizer first = Tokenizer::Create(vocabulary.view()).value();
  const auto ids = first.Encode("hello").value();
  const Tokenizer second = std::move(first);
  EXPECT_EQ(second.Encode("hello").value(), ids);
}

// Whether the tokenizer encodes a text if it may have at most this many tokens.
bool FitsIn(const TestTokenizer& tokenizer, std::string_view text, size_t max_tokens) {
  const auto ids = tokenizer->Encode(text, {.add_bos = false, .max_tokens = max_tokens});
  if (ids) return true;
  EXPECT_EQ(ids.error().code(), ErrorCode::kOutOfRange);
  EXPECT_THAT(ids.error().message(), testing::HasSubstr("has more than "));
  return false;
}

// A text that has no more tokens than allowed is never refused, even if parts are dropped or
// joined.
TEST(TokenizerTest, NoTextThatFitsIsRefused) {
  VocabularyDraft normalizing = ByteLevelDraft({"\u00E9", "\uD55C", " \u0390"});
  normalizing.rules.normalize_nfc = true;
  VocabularyDraft dropping = Hello();
  dropping.rules.remove_extra_whitespaces = true;
  VocabularyDraft joining = Hello();
  joining.rules.byte_fallback = false;
  VocabularyDraft lacking = ByteLevelDraft({"ab", "abab"});
  for (const char byte : {'a', 'h', '\xCC'}) lacking.pieces[static_cast<uint8_t>(byte)] = {};
  VocabularyDraft normalizing_lacking = lacking;
  normalizing_lacking.rules.normalize_nfc = true;
  VocabularyDraft lacking_characters = joining;
  lacking_characters.rules.unk_token_id = -1;
  for (const VocabularyDraft& draft :
       {ByteLevelDraft({"ab", "abab", "ababab"}), normalizing, Hello(), dropping, joining, lacking,
        normalizing_lacking, lacking_characters}) {
    const TestTokenizer tokenizer(draft);
    std::mt19937 random(7);
    for (int round = 0; round < 500; ++round) {
      std::string text = RandomText(random, true);
      switch (round % 5) {
        case 0:
          text = std::string(round, ' ') + "hello" + std::string(round, ' ');
          break;
        case 1:
          for (int i = 0; i < round; ++i) text += "\u1FBE\u0308\u0341\u1112\u1161\u11AB";
          break;
        case 2:
          for (int i = 0; i < round; ++i) text += "\u2581\u212A";
          break;
        case 3:
          for (int i = 0; i < round; ++i) text += "ab";
          break;
        default:
          break;
      }
      const auto ids = tokenizer->Encode(text, {.add_bos = false});
      if (!ids) continue;
      EXPECT_TRUE(FitsIn(tokenizer, text, ids->size())) << text;
    }
  }
}

// A vocabulary may have only ids that no text becomes, and whose pieces are empty.
TEST(TokenizerTest, AVocabularyWithoutPiecesExpressesNoText) {
  for (const TokenizerFamily family :
       {TokenizerFamily::kSentencePieceBpe, TokenizerFamily::kByteLevelBpe}) {
    VocabularyDraft draft;
    draft.rules.family = family;
    const OwnedVocabulary vocabulary = BuildVocabulary(draft, 3).value();
    const Tokenizer tokenizer = Tokenizer::Create(vocabulary.view()).value();
    EXPECT_TRUE(tokenizer.Encode("")->empty());
    EXPECT_TRUE(tokenizer.Encode("a", {.max_tokens = 0})->empty());
    EXPECT_THAT(tokenizer.LeftOut("aba"), ElementsAre("a", "b"));
  }
}

TEST(TokenizerTest, TextThatIsFarTooLongIsRefused) {
  VocabularyDraft normalizing = ByteLevelDraft({"ab"});
  normalizing.rules.normalize_nfc = true;
  VocabularyDraft dropping = Hello();
  dropping.rules.remove_extra_whitespaces = true;
  VocabularyDraft joining = Hello();
  joining.rules.byte_fallback = false;
  VocabularyDraft lacking = ByteLevelDraft({"ab"});
  lacking.pieces['l'] = {};
  std::string words;
  for (int i = 0; i < 10000; ++i) words += "hello ";
  for (const VocabularyDraft& draft :
       {ByteLevelDraft({"ab"}), normalizing, Hello(), dropping, joining, lacking}) {
    const TestTokenizer tokenizer(draft);
    EXPECT_FALSE(FitsIn(tokenizer, std::string(100000, 'e'), 100));
    EXPECT_FALSE(FitsIn(tokenizer, words, 100));
    EXPECT_TRUE(FitsIn(tokenizer, "hello", 100));
  }
  // What is dropped, or joined to one token, may be as long as one likes.
  EXPECT_TRUE(FitsIn(TestTokenizer(dropping), "he" + std::string(1 << 20, ' ') + "llo", 5));
  std::string unknown;
  for (int i = 0; i < 100000; ++i) unknown += "\u65E5";
  EXPECT_TRUE(FitsIn(TestTokenizer(joining), unknown, 5));
  EXPECT_FALSE(FitsIn(TestTokenizer(Hello()), unknown, 5));
  EXPECT_TRUE(FitsIn(TestTokenizer(lacking), std::string(1 << 20, 'l') + "hello", 5));
}

TEST(TokenizerTest, LongWordsTakeNoQuadraticTime) {
  const TestTokenizer tokenizer(ByteLevelDraft({"aa", "aaaa", "aaaaaaaa"}));
  EXPECT_EQ(tokenizer.Encode(std::string(1 << 20, 'a')).size(), size_t{1} << 17);
}

}  // namespace
}  // namespace cria
