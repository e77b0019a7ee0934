// Text from messages stays marked as not trusted in all operations of a template.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

// What is trusted in the rendering of an expression, and what is not, each joined.
struct Parts {
  std::string trusted;
  std::string untrusted;
};

Parts PartsOf(std::string_view source) {
  const auto segments = TryRender(source);
  if (!segments) {
    ADD_FAILURE() << source << "\n" << segments.error().message();
    return {};
  }
  Parts parts;
  for (const Segment& segment : *segments) {
    (segment.is_trusted ? parts.trusted : parts.untrusted) += segment.text;
  }
  return parts;
}

// `user` is <u>Öl</u>. Each of these writes characters of it, and | of the template.
TEST(JinjaTrustTest, ThroughEveryWay) {
  for (const char* source : {"{{ user }}|",
                             "{{ '|' + user }}",
                             "{{ user ~ '|' }}",
                             "{{ ('|' ~ user) | trim }}",
                             "{{ ('|' + user).strip() }}",
                             "{{ user | replace('x', 'y') }}|",
                             "{{ ('|' ~ user) | replace('|', '|') }}",
                             "{{ user.split('|')[0] }}|",
                             "{{ (user ~ '|').split('x') | join }}",
                             "{{ [user, ''] | join('|') }}",
                             "{{ '|'.join([user, '']) }}",
                             "{% for c in user %}{{ c }}{% endfor %}|",
                             "{{ user | list | join }}|",
                             "{{ user | string }}|",
                             "{{ user | wordwrap }}|",
                             "{{ ('|' ~ user).expandtabs() }}",
                             "{{ user.zfill(3) }}|",
                             "{{ cycler(user).next() }}|",
                             "{% macro m() %}{{ varargs[0] }}|{% endmacro %}{{ m(user) }}",
                             "{{ user | safe }}|",
                             "{{ '|{}'.format(user) }}",
                             "{{ user.format() }}|",
                             "{% filter trim %}{{ user }}|{% endfilter %}",
                             "{% macro m(x) %}{{ x }}|{% endmacro %}{{ m(*[user]) }}",
                             "{{ user | reverse | reverse }}|",
                             "{{ user[::-1][::-1] }}|",
                             "{{ user[0] ~ user[1:] }}|",
                             "{% set x %}{{ user }}|{% endset %}{{ x }}",
                             "{% macro m(x) %}{{ x }}|{% endmacro %}{{ m(user) }}",
                             "{% set ns = namespace(x=user) %}{{ ns.x }}|",
                             "{{ {'a': user}.a }}|",
                             "{{ {'a': user}.values() | first }}|",
                             "{{ [user] | map('trim') | first }}|",
                             "{{ missing | default(user) }}|",
                             "{{ (user ~ '|').removesuffix('x') }}",
                             "{{ user.splitlines() | first }}|",
                             "{{ user | indent }}|",
                             "{{ (user, '|') | join }}",
                             "{{ user * 1 }}|",
                             "{{ user if true }}|",
                             "{{ user or 'x' }}|",
                             "{{ [[user]][0][0] }}|",
                             "{{ [user] | sort | first }}|",
                             "{{ [user] | unique | first }}|",
                             "{{ {user: 1} | list | first }}|",
                             "{{ [user] | max }}|",
                             "{{ [user] | min(attribute=none) }}|",
                             "{{ [[user]] | sum(start=[]) | first }}|",
                             "{{ user | truncate(9) }}|",
                             "{{ (user ~ '|zzzzzz') | truncate(10, true, '', 0) }}",
                             "{{ '| 123456789' | truncate(10, false, user, 0) }}",
                             "{{ user | center(3) }}|",
                             "{{ '|'.ljust(1) ~ user.partition('x')[0] }}",
                             "{{ ('|' ~ user).partition(user) | join }}",
                             "{{ (user ~ ' |').rsplit(none, 1) | join }}",
                             "{{ {'a': user} | dictsort(by='value') | map('last') | first }}|",
                             "{{ 'x' | int(user, 16) }}|",
                             "{{ user | indent(2, blank=true) }}|",
                             "{{ ('x' ~ user)[1:] }}|",
                             "{{ (user ~ 'x')[:-1] }}|"}) {
    const Parts parts = PartsOf(source);
    EXPECT_EQ(parts.untrusted, "<u>\u00d6l</u>") << source;
    EXPECT_EQ(parts.trusted, "|") << source;
  }
}

TEST(JinjaTrustTest, ChangedCharactersStaySo) {
  EXPECT_EQ(PartsOf("{{ '[%9s]' % user[:3] }}").untrusted, "<u>");
  EXPECT_EQ(PartsOf("{{ '%.3s' | format(user) }}{{ user | urlencode }}").trusted, "");
  EXPECT_EQ(PartsOf("{{ user | upper }}").untrusted, "<U>\u00d6L</U>");
  EXPECT_EQ(PartsOf("{{ user.title() }}{{ user | capitalize }}").trusted, "");
  EXPECT_EQ(PartsOf("{{ '|' | safe + user }}").untrusted, "&lt;u&gt;\u00d6l&lt;/u&gt;");
  EXPECT_EQ(PartsOf("{{ (user[0] ~ '{}' ~ user[0]).format('b') }}").untrusted, "<<");
  EXPECT_EQ(PartsOf("{{ 'A' ~ user | lower }}").untrusted, "<u>\u00f6l</u>");
  EXPECT_EQ(PartsOf("{{ user | replace('u', '|') }}").untrusted, "<>\u00d6l</>");
  EXPECT_EQ(PartsOf("{{ user | replace('u', '|') }}").trusted, "||");
  EXPECT_EQ(PartsOf("{{ 'a-b' | replace('-', user) }}").untrusted, "<u>\u00d6l</u>");
}

TEST(JinjaTrustTest, Json) {
  const Parts parts = PartsOf("{{ {'k': user ~ '\"'} | tojson }}");
  EXPECT_EQ(parts.untrusted, "<u>\u00d6l</u>");
  EXPECT_EQ(parts.trusted, "{\"k\": \"\\\"\"}");
}

// What is put between the values, and what stands for their characters.
TEST(JinjaTrustTest, JsonOfOthersArguments) {
  EXPECT_EQ(PartsOf("{{ [1, 2] | tojson(separators=(user, ':')) }}").untrusted, "<u>\u00d6l</u>");
  EXPECT_EQ(PartsOf("{{ [1] | tojson(indent=user) }}").untrusted, "<u>\u00d6l</u>");
  EXPECT_EQ(PartsOf("{{ user | tojson(true) }}").untrusted, "<u>\\u00d6l</u>");
}

TEST(JinjaTrustTest, WhatIsFilledIn) {
  EXPECT_EQ(PartsOf("{{ 'ab'.center(5, user[4]) }}").untrusted, "lll");
  EXPECT_EQ(PartsOf("{{ 'ab' | replace('', user[4]) }}").untrusted, "lll");
  EXPECT_EQ(PartsOf("{{ user | indent('  ', true) }}").trusted, "  ");
}

TEST(JinjaTrustTest, ListsAsPythonWritesThem) {
  const Parts parts = PartsOf("{{ [user] }}");
  EXPECT_EQ(parts.untrusted, "<u>\u00d6l</u>");
  EXPECT_EQ(parts.trusted, "['']");
}

TEST(JinjaTrustTest, ADateIsAsTrustedAsItsFormat) {
  EXPECT_EQ(PartsOf("{{ strftime_now('%Y' ~ user) }}").trusted, "");
  EXPECT_EQ(PartsOf("{{ strftime_now('%Y') }}").trusted, "2024");
}

TEST(JinjaTrustTest, NeighboursDifferInTrust) {
  const auto segments = TryRender("a{{ 'b' }}{{ user }}{{ user }}c").value();
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[0].text, "ab");
  EXPECT_TRUE(segments[0].is_trusted);
  EXPECT_EQ(segments[1].text, "<u>\u00d6l</u><u>\u00d6l</u>");
  EXPECT_FALSE(segments[1].is_trusted);
  EXPECT_EQ(segments[2].text, "c");
}

}  // namespace
}  // namespace cria::jinja
