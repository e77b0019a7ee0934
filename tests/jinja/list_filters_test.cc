#include "jinja/list_filters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaListFiltersTest, JoinFirstLastAndReverse) {
  EXPECT_EQ(Print("words | join(', ')"), "b, a, C");
  EXPECT_EQ(Print("messages | join('/', attribute='role')"), "user/assistant");
  EXPECT_EQ(Print("[words | first, words | last, 'xyz' | first]"), "['b', 'C', 'x']");
  EXPECT_EQ(Print("[] | first is defined"), "False");
  EXPECT_EQ(Print("[words | reverse | list, 'abc' | reverse]"), "[['C', 'a', 'b'], 'cba']");
  EXPECT_EQ(Print("'ab' | list"), "['a', 'b']");
}

TEST(JinjaListFiltersTest, Orders) {
  EXPECT_EQ(Print("[words | sort, words | sort(case_sensitive=true), numbers | sort(true)]"),
            "[['a', 'b', 'C'], ['C', 'a', 'b'], [3, 2, 1]]");
  EXPECT_EQ(Print("messages | sort(attribute='role') | map(attribute='role') | list"),
            "['assistant', 'user']");
  EXPECT_EQ(Print("{'b': 1, 'A': 2} | dictsort"), "[('A', 2), ('b', 1)]");
  EXPECT_EQ(Print("['a', 'b', 'A'] | unique | list"), "['a', 'b']");
  EXPECT_EQ(Print("[{'b': 1} | items | list, missing | items | list]"), "[[('b', 1)], []]");
  EXPECT_THAT(Print("[1, 'a'] | sort"), HasSubstr("'<' is not possible with"));
  EXPECT_THAT(Print("1 | items"), HasSubstr("int has no items"));
}

TEST(JinjaListFiltersTest, Choices) {
  EXPECT_EQ(Print("[0, 1, '', 'a'] | select | list"), "[1, 'a']");
  EXPECT_EQ(Print("numbers | select('odd') | list"), "[3, 1]");
  EXPECT_EQ(Print("numbers | reject('equalto', 3) | join(',')"), "1,2");
  EXPECT_EQ(Print("numbers | select('>', 1) | list"), "[3, 2]");
  EXPECT_EQ(
      Print("messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list"),
      "[' Hi ']");
  EXPECT_EQ(Print("messages | rejectattr('role', 'in', ['user']) | list | length"), "1");
  EXPECT_EQ(Print("messages | selectattr('missing') | list"), "[]");
  EXPECT_THAT(Print("numbers | select('nothing') | list"), HasSubstr("the test 'nothing'"));
  EXPECT_THAT(Print("numbers | selectattr | list"),
              HasSubstr("a filter needs a name as an argument"));
}

TEST(JinjaListFiltersTest, Map) {
  EXPECT_EQ(Print("words | map('upper') | join"), "BAC");
  EXPECT_EQ(Print("words | map('replace', 'a', 'z') | list"), "['b', 'z', 'C']");
  EXPECT_EQ(Print("[{'a': {'b': [5]}}] | map(attribute='a.b.0') | list"), "[5]");
  EXPECT_EQ(Print("[{}] | map(attribute='a', default='-') | list"), "['-']");
  EXPECT_THAT(Print("words | map('nothing') | list"), HasSubstr("the filter 'nothing'"));
}

}  // namespace
}  // namespace cria::jinja
