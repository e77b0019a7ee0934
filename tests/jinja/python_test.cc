// Compares with Python's jinja2, if it is installed.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "jinja/render_support.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace cria::jinja {
namespace {

using nlohmann::json;

// Python's renderings of the templates; nothing if it has no jinja2.
json PythonRenderings(const std::vector<std::string>& sources) {
  const auto has_jinja2 = [] {
    return support::RunProgram({"/bin/sh", "-c", "python3 -c 'import jinja2' 2>&1"});
  };
  if (has_jinja2().exit_code != 0) return {};
  const auto run =
      support::RunProgram({"python3", support::SourcePath("tests/jinja/render_with_python.py")},
                          {.input = json(sources).dump()});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  return json::parse(run.output);
}

void ExpectAsPython(const std::vector<std::string>& sources) {
  const json renderings = PythonRenderings(sources);
  if (renderings.is_null()) GTEST_SKIP() << "there is no python3 with jinja2 to compare with";
  ASSERT_EQ(renderings.size(), sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    if (renderings[i].contains("text")) {
      EXPECT_EQ(RenderText(sources[i]), renderings[i]["text"].get<std::string>()) << sources[i];
    } else {
      EXPECT_FALSE(TryRender(sources[i])) << sources[i] << "\n" << renderings[i]["error"];
    }
  }
}

TEST(PythonTest, TheFuzzersCorpus) {
  std::vector<std::string> sources;
  for (const std::string& name :
       support::FileNames(support::SourcePath("tests/fuzz/corpus/jinja"))) {
    sources.push_back(support::ReadFile(
        std::filesystem::path(support::SourcePath("tests/fuzz/corpus/jinja")) / name));
  }
  ASSERT_FALSE(sources.empty());
  ExpectAsPython(sources);
}

// Each fails in both, or in neither.
TEST(PythonTest, WhatIsAnError) {
  ExpectAsPython({
      "{{ missing.x }}",
      "{{ missing[0] }}",
      "{{ missing + 1 }}",
      "{{ missing() }}",
      "{{ missing ~ 'a' }}",
      "{{ missing == none }}",
      "{{ missing == missing2 }}",
      "{{ missing < 1 }}",
      "{{ -missing }}",
      "{{ none.x }}|",
      "{{ none + 'a' }}",
      "{{ 'a' + 1 }}",
      "{{ 1 + none }}",
      "{{ [1] + (2,) }}",
      "{{ 1 / 0 }}",
      "{{ 1 % 0 }}",
      "{{ 1 // 0.0 }}",
      "{{ 1 < 'a' }}",
      "{{ none in 'a' }}",
      "{{ 1 in 2 }}",
      "{{ 1 in 'a1' }}",
      "{{ none | length }}",
      "{{ 5 | list }}",
      "{% for x in 5 %}{% endfor %}",
      "{% for x in none %}{% endfor %}",
      "{% for a, b in [1] %}{% endfor %}",
      "{% for a, b in [(1, 2, 3)] %}{% endfor %}",
      "{{ raise_exception('x') }}",
      "{{ 1() }}",
      "{{ 'a'.nothing() }}",
      "{{ 'a'.nothing }}|",
      "{{ words.append('x') }}",
      "{{ messages[0].update({}) }}",
      "{% set x.y = 1 %}",
      "{% set messages.x = 1 %}",
      "{{ x | nothing }}",
      "{{ x is nothing }}",
      "{{ 'a' | tojson }}",
      "{{ missing | tojson }}",
      "{{ 'a'.split('') }}",
      "{{ 'a' * 'b' }}",
      "{{ not }}",
      "{{ 1 + }}",
      "{{ (1 }}",
      "{{ [1 }}",
      "{{ {1} }}",
      "{{ {1: } }}",
      "{{ 'a }}",
      "{{ 1 2 }}",
      "{{ a b }}",
      "{{ a. }}",
      "{{ a[ }}",
      "{{ a[] }}",
      "{{ a | }}",
      "{{ a is }}",
      "{{ $ }}",
      "{{",
      "{%",
      "{% if %}{% endif %}",
      "{% if 1 %}",
      "{% endif %}",
      "{% else %}",
      "{% for %}{% endfor %}",
      "{% for x %}{% endfor %}",
      "{% for x in [] %}{% endif %}",
      "{% set %}",
      "{% set 1 = 2 %}",
      "{% macro %}{% endmacro %}",
      "{% macro m( %}{% endmacro %}",
      "{% break %}",
      "{% continue %}",
      "{% endraw %}",
      "{% nothing %}",
      "{% %}",
      "{{ }}",
      "{% if 1 }}",
      "{{ 1 %}",
      "{{ words | join(1, 2, 3) }}",
      "{{ range(0, 5, 0) }}",
      "{{ namespace(1) }}",
      "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
      "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=1) }}",
      "{{ 'x' is divisibleby 2 }}",
      "{{ words[1:2:0] }}",
      "{{ words['x'] }}|",
      "{{ words['0'] }}|",
      "{{ 5[0] }}|",
      "{{ [3, 'a'] | sort }}",
      "{{ 'a' < none }}",
      "{{ 'abc'.find(1) }}",
      "{{ 'a'.startswith(1) }}",
      "{{ true + true }}",
      "{{ -true }}",
      "{{ 1.x }}",
      "{{ 'a'[none] }}|",
      "{{ words[none] }}|",
      "{{ 1_0 }}",
      "{{ {'a': 1}.a }}",
      "{{ loop }}",
      "{{ loop.index }}",
      "{% for x in [1] %}{{ loop.nothing }}|{% endfor %}",
      "{% for x in [1] %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
      "{{ 'a' if missing.x }}",
      "{{ missing is defined and missing.x }}",
      "{{ 'x' and missing }}|",
      "{% if missing %}a{% else %}b{% endif %}",
      "{{ missing | upper }}|",
      "{{ missing | first }}|",
      "{{ words | first | upper }}",
      "{{ words | map('nothing') | list }}",
      "{{ [1] | select('nothing') | list }}",
      "{{ numbers | join(',') | replace(',', none) }}",
      "{{ 'a' | replace('a') }}",
      "{{ 1 if 2 else }}",
      "{{ 'a' | default }}",
      "{{ a.b.c is defined }}",
      "{{ messages[0].x.y }}",
      "{{ messages[0]['x']['y'] }}",
      "{% call m() %}{% endcall %}",
      "{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}",
      "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
      "{% macro m() %}{{ caller() }}{% endmacro %}{{ m(1) }}",
      "{% macro m() %}{{ caller(1) }}{% endmacro %}{% call m() %}{% endcall %}",
      "{% macro m() %}a{% endmacro %}{% call m() | upper %}{% endcall %}",
      "{% call %}{% endcall %}",
      "{% with a %}{% endwith %}",
      "{% with a=1, %}{% endwith %}",
      "{% with a=1 %}",
      "{% with a, b = [1] %}{% endwith %}",
      "{{ '%s' % () }}",
      "{{ '%s' % (1, 2) }}",
      "{{ 'x' % 1 }}",
      "{{ '%d' % 'a' }}",
      "{{ '%(a)s' % {} }}",
      "{{ '%(a)s' % 'x' }}",
      "{{ '%d' | format(missing) }}",
      "{{ '%s' | format(1, a=2) }}",
      "{{ '%' % 1 }}",
      "{{ [1] | batch }}",
      "{{ [1] | slice(0) | list }}",
      "{{ messages | groupby }}",
      "{{ [{'a': 1}, {'b': 1}] | groupby('a') }}",
      "{{ [1] | urlencode }}",
      "{{ ['abc'] | urlencode }}",
      "{% for x in [1] %}{{ loop.cycle() }}{% endfor %}",
      "{% for x in [1] %}{{ loop.changed(a=1) }}{% endfor %}",
      "{% for x in [1] %}{{ loop([1]) }}{% endfor %}",
      "{% for x in [1] recursive %}{{ loop() }}{% endfor %}",
      "{% for x in [1] recursive %}{{ loop([1], 2) }}{% endfor %}",
      "{% for x in [1] recursive %}{{ loop(5) }}{% endfor %}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{% for x in [] recursive %}{% endfor %}{{ loop([]) }}",
      "{{ cycler() }}",
      "{% set c = cycler(1) %}{{ c() }}",
      "{% set j = joiner(1, 2) %}",
      "{% macro m() %}{{ varargs }}{% endmacro %}{{ m(a=1) }}",
      "{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(1) }}",
      "{{ 'a' | wordwrap(0) }}",
      "{{ 5 | wordwrap }}",
      "{{ '%x' % 1.5 }}",
      "{{ '%c' % 'ab' }}",
      "{{ '%c' % 1114112 }}",
      "{{ '%z' % 1 }}",
      "{{ '%5%' % () }}",
      "{{ '%*d' % 1 }}",
      "{{ ('%x' | safe) % 1 }}",
      "{{ ','.join([1]) }}",
      "{{ 'a'.strip(1) }}",
      "{{ range(2) | tojson }}",
      "{{ {}.items() | tojson }}",
      "{{ words.sort() }}",
      "{{ 0x }}",
      "{{ 0b2 }}",
  });
}

}  // namespace
}  // namespace cria::jinja
