#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaMethodsTest, Strips) {
  EXPECT_EQ(Print("[' a '.strip(), ' a '.lstrip(), ' a '.rstrip()]"), "['a', 'a ', ' a']");
  EXPECT_EQ(Print("['xyaxy'.strip('xy'), 'aab'.lstrip('a'), 'a'.strip(''), ' a'.strip(none)]"),
            "['a', 'b', 'a', 'a']");
}

TEST(JinjaMethodsTest, Splits) {
  EXPECT_EQ(Print("['a b  c'.split(), ' a  b '.split(none, 1), ''.split()]"),
            "[['a', 'b', 'c'], ['a', 'b '], []]");
  EXPECT_EQ(Print("['a,b,,c'.split(','), 'a,b,c'.split(',', 1), ''.split(',')]"),
            "[['a', 'b', '', 'c'], ['a', 'b,c'], ['']]");
  EXPECT_EQ(Print("['a,b,c'.rsplit(',', 1), 'x</t>y'.split('</t>')[-1]]"), "[['a,b', 'c'], 'y']");
  EXPECT_EQ(Print("'a\nb\r\nc\n'.splitlines()"), "['a', 'b', 'c']");
  EXPECT_THAT(Print("'a'.split('')"), HasSubstr("cannot be split at an empty one"));
}

TEST(JinjaMethodsTest, Affixes) {
  EXPECT_EQ(Print("['ab'.startswith('a'), 'ab'.endswith(('x', 'b')), 'ab'.startswith('b')]"),
            "[True, True, False]");
  EXPECT_EQ(Print("['ab'.removeprefix('a'), 'ab'.removesuffix('a'), 'ab'.removesuffix('b')]"),
            "['b', 'ab', 'a']");
  EXPECT_THAT(Print("'ab'.startswith(1)"), HasSubstr("is given a value of type int"));
}

TEST(JinjaMethodsTest, CaseAndReplacing) {
  EXPECT_EQ(Print("['aB'.upper(), 'aB'.lower(), 'ab cd'.title(), 'aB'.capitalize()]"),
            "['AB', 'ab', 'Ab Cd', 'Ab']");
  EXPECT_EQ(Print("['aaa'.replace('a', 'b', 2), ','.join(words)]"), "['bba', 'b,a,C']");
}

TEST(JinjaMethodsTest, Searches) {
  EXPECT_EQ(Print("[user.find('l'), user.rfind('<'), user.find('x'), 'aXbX'.count('X')]"),
            "[4, 5, -1, 2]");
  EXPECT_EQ(Print("['12'.isdigit(), ''.isdigit(), 'ab'.isalpha(), 'a1'.isalnum(), ' '.isspace()]"),
            "[True, False, True, True, True]");
}

TEST(JinjaMethodsTest, CharactersBeyondAscii) {
  EXPECT_EQ(Print("['\u00e9'.isalpha(), '—'.isalpha(), '\u0663'.isdigit(), '\u00c9'.isupper()]"),
            "[True, False, True, True]");
  EXPECT_EQ(Print("['\u00b2'.isdigit(), '\u00b2'.isdecimal(), '\u00bd'.isnumeric(), "
                  "'\u4e00'.isnumeric(), 'a\u00b2'.isalnum(), '\u65e5'.isupper()]"),
            "[True, False, True, True, True, False]");
  EXPECT_EQ(Print("['é'.isascii(), ''.isascii(), 'a\u200b'.isprintable(), 'é '.isprintable()]"),
            "[False, True, False, True]");
  EXPECT_EQ(Print("['Straße'.casefold(), 'aBß'.swapcase(), 'ß \ufb01n'.title()]"),
            "['strasse', 'AbSS', 'Ss Fin']");
  // As repr() has them.
  EXPECT_EQ(Print("['x\u200by', '\u00a0', '\U000e0001', '\x7f', 'é', '\\\\']"),
            "['x\\u200by', '\\xa0', '\\U000e0001', '\\x7f', 'é', '\\\\']");
}

TEST(JinjaMethodsTest, Dictionaries) {
  EXPECT_EQ(Print("[{'a': 1}.items() | list, {'a': 1}.keys() | list, {'a': 1}.values() | list]"),
            "[[('a', 1)], ['a'], [1]]");
  EXPECT_EQ(Print("[{'a': 1}.get('a'), {}.get('a'), {}.get('a', 2)]"), "[1, None, 2]");
}

TEST(JinjaMethodsTest, RightSplitsAtWhiteSpace) {
  EXPECT_EQ(Print("[' a  b c '.rsplit(none, 1), ' a b '.rsplit(none, 5), ' a b '.rsplit(none, 0)]"),
            "[[' a  b', 'c'], ['a', 'b'], [' a b']]");
}

TEST(JinjaMethodsTest, PartsAndPositions) {
  EXPECT_EQ(Print("['a=b=c'.partition('='), 'a=b=c'.rpartition('='), 'a'.partition('=')]"),
            "[('a', '=', 'b=c'), ('a=b', '=', 'c'), ('a', '', '')]");
  EXPECT_EQ(Print("['a'.rpartition('='), 'öbb'.index('b'), 'öbb'.rindex('b')]"),
            "[('', '', 'a'), 1, 2]");
  EXPECT_THAT(Print("'a'.index('b')"), HasSubstr("does not contain 'b'"));
  EXPECT_THAT(Print("'a'.partition('')"), HasSubstr("cut at an empty one"));
  EXPECT_EQ(Print("[words.index('a'), [1, 2, 1].count(1), words.copy() == words]"), "[1, 2, True]");
  EXPECT_THAT(Print("words.index('x')"), HasSubstr("does not have the item"));
}

TEST(JinjaMethodsTest, Padding) {
  EXPECT_EQ(Print("['ö'.ljust(3), 'ö'.rjust(3, '.'), 'ab'.center(5, '-'), 'abc'.center(6, '-')]"),
            "['ö  ', '..ö', '--ab-', '-abc--']");
  EXPECT_EQ(Print("['a'.ljust(-5), 'aB'.islower(), 'AB1'.isupper(), '12'.isnumeric()]"),
            "['a', False, True, True]");
  EXPECT_THAT(Print("'a'.ljust(3, '')"), HasSubstr("filled up with one character"));
  EXPECT_THAT(Print("'a'.ljust('3')"), HasSubstr("must be a whole number"));
}

TEST(JinjaMethodsTest, ZerosAndTabs) {
  EXPECT_EQ(Print("['-5'.zfill(4), '+é'.zfill(3), '7'.zfill(-1), ''.zfill(2)]"),
            "['-005', '+0é', '7', '00']");
  EXPECT_EQ(Print("['a\\tb\\n\\tc'.expandtabs(3), 'é\\t|'.expandtabs(), '\\t'.expandtabs(0)]"),
            "['a  b\\n   c', 'é       |', '']");
  EXPECT_EQ(Print("['Ab Cd', 'AB', 'ab', '', 'A1B', '1'] | map('attr', 'istitle') | list | length"),
            "6");
  EXPECT_EQ(Print("['Ab Cd'.istitle(), 'AB'.istitle(), ''.istitle(), 'A1B É'.istitle()]"),
            "[True, False, False, True]");
}

TEST(JinjaMethodsTest, PartsThatAreSearched) {
  EXPECT_EQ(Print("['éabé'.find('é', 1), 'éabé'.rfind('é', 0, -1), 'abc'.count('', 2), "
                  "'abc'.find('', 4), 'abc'.find('b', 2, 1)]"),
            "[3, 0, 2, -1, -1]");
  EXPECT_EQ(Print("['abc'.startswith('b', 1), 'abc'.endswith('b', none, 2), "
                  "'abc'.startswith(('x', 'c'), -1), 'abc'.startswith('', 4)]"),
            "[True, True, True, False]");
  EXPECT_THAT(Print("'abc'.index('a', 1)"), HasSubstr("does not contain 'a'"));
  EXPECT_THAT(Print("'abc'.find('a', 'b')"), HasSubstr("a position must be a whole number"));
}

TEST(JinjaMethodsTest, OnlyTextsAreJoinedAndRemoved) {
  EXPECT_THAT(Print("','.join([1])"), HasSubstr("the filter 'join' does so"));
  EXPECT_THAT(Print("'a'.strip(1)"), HasSubstr("type int is not a text"));
  EXPECT_THAT(Print("'a'.split(1)"), HasSubstr("type int is not a text"));
}

TEST(JinjaMethodsTest, NothingChangesAValue) {
  EXPECT_THAT(Print("words.append('x')"), HasSubstr("'append()' changes a value"));
  EXPECT_THAT(Print("messages[0].update({})"), HasSubstr("'update()' changes a value"));
}

}  // namespace
}  // namespace cria::jinja
