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

TEST(JinjaListFiltersTest, WhatIsFalseHasNoItems) {
  for (const char* value : {"none", "missing", "false", "0", "''", "[]", "{}"}) {
    for (const char* filter :
         {"map('upper')", "map(attribute='a')", "map('nothing')", "select", "select('odd')",
          "reject('nothing')", "selectattr('a')", "rejectattr('a', 'eq', 1)"}) {
      EXPECT_EQ(Print(std::string(value) + " | " + filter + " | list"), "[]") << value << filter;
    }
  }
  EXPECT_THAT(Print("5 | map('upper') | list"), HasSubstr("int cannot be iterated"));
  EXPECT_THAT(Print("none | unique | list"), HasSubstr("NoneType cannot be iterated"));
}

// A generator, in Python.
TEST(JinjaListFiltersTest, ItemsForOneLoop) {
  EXPECT_EQ(RenderText("{% if numbers | select('gt', 9) %}true{% endif %}"), "true");
  EXPECT_EQ(RenderText("{% set x = numbers | map('string') %}{{ x | join }}|{{ x | join }}|"
                       "{% for y in x %}{{ y }}{% endfor %}"),
            "312||");
  EXPECT_EQ(Print("3 in numbers | select and 'b' not in words | reject('eq', 'b')"), "True");
  EXPECT_EQ(Print("[(numbers | select) is iterable, (numbers | select) is sequence]"),
            "[True, False]");
  EXPECT_EQ(Print("(numbers | select)[0]"), "");
  EXPECT_THAT(Print("numbers | select | length"), HasSubstr("generator has no length"));
  EXPECT_THAT(Print("numbers | select | tojson"), HasSubstr("generator cannot be written"));
}

TEST(JinjaListFiltersTest, SumsAndExtremes) {
  EXPECT_EQ(Print("[numbers | sum, [] | sum, numbers | sum(start=10), [1.5, true] | sum]"),
            "[6, 0, 16, 2.5]");
  EXPECT_EQ(Print("[[{'n': 2}, {'n': 3}] | sum(attribute='n'), [[1], [2]] | sum(start=[])]"),
            "[5, [1, 2]]");
  EXPECT_EQ(Print("[numbers | min, numbers | max, words | min, words | max, 'bAc' | max]"),
            "[1, 3, 'a', 'C', 'c']");
  EXPECT_EQ(Print("[words | min(true), words | max(case_sensitive=true), ['A', 'a'] | max]"),
            "['C', 'b', 'A']");
  EXPECT_EQ(Print("[messages | max(attribute='role')] | map(attribute='role') | join"), "user");
  EXPECT_EQ(Print("[[] | min is defined, none | default([], true) | max is defined]"),
            "[False, False]");
  EXPECT_THAT(Print("words | sum"),
              HasSubstr("'+' is not possible with values of type int and str"));
  EXPECT_THAT(Print("words | sum(start='')"), HasSubstr("use join"));
  EXPECT_THAT(Print("[1, 'a'] | max"), HasSubstr("'<' is not possible with"));
  EXPECT_THAT(Print("numbers | sum(attribute='n')"), HasSubstr("'n' is undefined"));
}

TEST(JinjaListFiltersTest, OrdersOfDictionariesAndAttributes) {
  EXPECT_EQ(Print("{'b': 1, 'A': 2} | dictsort(true)"), "[('A', 2), ('b', 1)]");
  EXPECT_EQ(Print("{'b': 1, 'A': 2, 'C': 0} | dictsort(by='value')"),
            "[('C', 0), ('b', 1), ('A', 2)]");
  EXPECT_EQ(Print("{'b': 1, 'A': 2, 'C': 0} | dictsort(false, 'key', true)"),
            "[('C', 0), ('b', 1), ('A', 2)]");
  EXPECT_THAT(Print("{} | dictsort(by='x')"), HasSubstr("by 'key' or by 'value', not by 'x'"));
  EXPECT_EQ(Print("[{'a': 1, 'b': 'y'}, {'a': 0, 'b': 'z'}, {'a': 0, 'b': 'X'}] | "
                  "sort(attribute='a,b') | map(attribute='b') | join"),
            "Xzy");
  EXPECT_EQ(Print("[words + ['A'] | unique(true) | list, messages | unique(attribute='role') | "
                  "map(attribute='role') | list]"),
            "[['b', 'a', 'C', 'A'], ['user', 'assistant']]");
}

TEST(JinjaListFiltersTest, Parts) {
  EXPECT_EQ(Print("[1, 2, 3] | batch(2, 0) | list"), "[[1, 2], [3, 0]]");
  EXPECT_EQ(Print("[1, 2, 3] | slice(2, 0) | list"), "[[1, 2], [3, 0]]");
  EXPECT_EQ(Print("(messages | groupby('role'))[0].grouper"), "assistant");
  EXPECT_THAT(Print("[1] | batch | list"), HasSubstr("must be a whole number"));
  EXPECT_THAT(Print("[1] | slice(0) | list"), HasSubstr("division by zero"));
  EXPECT_THAT(Print("[1] | batch(9223372036854775807, 0)"), HasSubstr("takes too"));
  EXPECT_THAT(Print("[1] | slice(9223372036854775807)"), HasSubstr("takes too"));
  EXPECT_THAT(Print("5 | batch(1)"), HasSubstr("int cannot be iterated"));
  EXPECT_THAT(Print("messages | groupby"), HasSubstr("groupby needs an attribute"));
  EXPECT_THAT(Print("[{'a': 1}, {'a': 'x'}] | groupby('a')"), HasSubstr("'<' is not possible"));
}

TEST(JinjaListFiltersTest, Map) {
  EXPECT_EQ(Print("[{}, {'a': {'b': 1}}] | map(attribute='a.b', default={}) | list"), "[{}, 1]");
  EXPECT_EQ(Print("[{}] | map('attr', 'a') | map('default', 1) | list"), "[1]");
  EXPECT_THAT(Print("words | map(x='a') | list"), HasSubstr("'map' is given an argument"));
  EXPECT_THAT(Print("words | map(default='a') | list"),
              HasSubstr("a filter needs a name as an argument"));
  EXPECT_EQ(Print("[[1, 2], [3]] | selectattr(1) | list"), "[[1, 2]]");
  EXPECT_EQ(Print("words | map('upper') | join"), "BAC");
  EXPECT_EQ(Print("words | map('replace', 'a', 'z') | list"), "['b', 'z', 'C']");
  EXPECT_EQ(Print("[{'a': {'b': [5]}}] | map(attribute='a.b.0') | list"), "[5]");
  EXPECT_EQ(Print("[{}] | map(attribute='a', default='-') | list"), "['-']");
  EXPECT_THAT(Print("words | map('nothing') | list"), HasSubstr("the filter 'nothing'"));
}

}  // namespace
}  // namespace cria::jinja
