#pragma once

#include <cstddef>
#include <string_view>

#include "cria/error.h"
#include "grammar/expressions.h"

namespace cria::grammar {

inline constexpr size_t kMaxGbnfBytes = 1 << 18;

// Reads a grammar in llama.cpp's notation, GBNF, and returns the rule `root`.
//
// A grammar is rules, `name ::= …`, each on one line, but that the line may end inside parentheses
// and behind `::=` and `|`. A rule has literals "…", characters `.` and classes […], names of
// rules, groups (…), alternatives `|`, which may be empty, and the repetitions * + ? {m} {m,}
// {m,n}. `%json {…}`, an extension of this project, is a value that matches the JSON Schema.
// Comments begin with `#`. Escapes are \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH.
//
// Refused are tokens of a vocabulary (<…>), rules that are defined twice or not at all, and left
// recursion. An error names the line and the column in characters, both counted from 1.
Result<Node> ReadGbnf(Expressions& expressions, std::string_view text);

}  // namespace cria::grammar
