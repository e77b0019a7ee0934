#include "naive_grammar.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cria::grammar {
namespace {

using Kind = NaiveGrammar::Kind;
using Tree = NaiveGrammar::Tree;
// Bit i: a match may end at position i.
using Ends = uint32_t;

class NaiveMatcher {
 public:
  NaiveMatcher(const NaiveGrammar& grammar, std::string_view text)
      : grammar_(grammar), text_(text) {}

  Ends From(const Tree& tree, size_t begin) {
    switch (tree.kind) {
      case Kind::kEmpty:
        return Ends{1} << begin;
      case Kind::kBytes:
        return begin < text_.size() && tree.bytes.Has(static_cast<uint8_t>(text_[begin]))
                   ? Ends{2} << begin
                   : 0;
      case Kind::kSequence: {
        Ends ends = Ends{1} << begin;
        for (const Tree& part : tree.parts) ends = FromAll(part, ends);
        return ends;
      }
      case Kind::kChoice: {
        Ends ends = 0;
        for (const Tree& part : tree.parts) ends |= From(part, begin);
        return ends;
      }
      case Kind::kRepeat: {
        Ends reached = Ends{1} << begin;
        Ends ends = tree.min == 0 ? reached : 0;
        for (uint32_t i = 1; i <= tree.max && i <= tree.min + text_.size() + 1; ++i) {
          reached = FromAll(tree.parts[0], reached);
          if (i >= tree.min) ends |= reached;
        }
        return ends;
      }
      case Kind::kBoth:
        return From(tree.parts[0], begin) & From(tree.parts[1], begin);
      case Kind::kNot: {
        const Ends all = ((Ends{2} << text_.size()) - 1) & ~((Ends{1} << begin) - 1);
        return all & ~From(tree.parts[0], begin);
      }
      case Kind::kRule: {
        const auto key = std::pair(tree.rule, begin);
        const auto known = known_.find(key);
        if (known != known_.end()) return known->second;
        return known_[key] = From(grammar_.rules[tree.rule], begin);
      }
    }
    return 0;
  }

 private:
  Ends FromAll(const Tree& tree, Ends begins) {
    Ends ends = 0;
    for (size_t i = 0; i <= text_.size(); ++i) {
      if ((begins >> i & 1) != 0) ends |= From(tree, i);
    }
    return ends;
  }

  const NaiveGrammar& grammar_;
  std::string_view text_;
  std::map<std::pair<size_t, size_t>, Ends> known_;
};

Node BuildTree(Expressions& expressions, const Tree& tree, const std::vector<Node>& rules) {
  std::vector<Node> parts;
  for (const Tree& part : tree.parts) parts.push_back(BuildTree(expressions, part, rules));
  switch (tree.kind) {
    case Kind::kEmpty:
      return Expressions::kEmpty;
    case Kind::kBytes:
      return expressions.Bytes(tree.bytes);
    case Kind::kSequence:
      return expressions.Sequence(parts);
    case Kind::kChoice:
      return expressions.Choice(parts);
    case Kind::kRepeat:
      return expressions.Repeat(parts[0], tree.min, tree.max);
    case Kind::kBoth:
      return expressions.Both(parts[0], parts[1]);
    case Kind::kNot:
      return expressions.Not(parts[0]);
    case Kind::kRule:
      return rules[tree.rule];
  }
  return Expressions::kNothing;
}

std::string TreeToString(const Tree& tree) {
  std::string text;
  const auto parts = [&tree](std::string_view between) {
    std::string joined = "(";
    for (const Tree& part : tree.parts) {
      if (joined.size() > 1) joined += between;
      joined += TreeToString(part);
    }
    return joined + ")";
  };
  switch (tree.kind) {
    case Kind::kEmpty:
      return "()";
    case Kind::kBytes:
      for (char letter = 'a'; letter <= 'z'; ++letter) {
        if (tree.bytes.Has(static_cast<uint8_t>(letter))) text += letter;
      }
      return text.size() == 1 ? text : "[" + text + "]";
    case Kind::kSequence:
      return parts(" ");
    case Kind::kChoice:
      return parts("|");
    case Kind::kRepeat:
      return parts("") + "{" + std::to_string(tree.min) + "," +
             (tree.max == kUnbounded ? "" : std::to_string(tree.max)) + "}";
    case Kind::kBoth:
      return parts("&");
    case Kind::kNot:
      return "!" + parts("");
    case Kind::kRule:
      return "R" + std::to_string(tree.rule);
  }
  return text;
}

class RandomTrees {
 public:
  RandomTrees(std::mt19937& random, size_t num_rules, unsigned num_letters)
      : random_(random), num_rules_(num_rules), num_letters_(num_letters) {}

  // Rules are behind a letter, and not in an intersection or complement.
  Tree Make(size_t depth, bool with_rules) {
    const unsigned choice = depth == 0 ? Below(3) : Below(16);
    if (choice < 2) return Bytes();
    if (choice == 2) return with_rules ? BehindLetter() : Tree{};
    if (choice < 7) return WithParts(Kind::kSequence, 2 + Below(2), depth, with_rules);
    if (choice < 11) return WithParts(Kind::kChoice, 2 + Below(3), depth, with_rules);
    if (choice < 13) {
      Tree tree = WithParts(Kind::kRepeat, 1, depth, with_rules);
      tree.min = Below(3);
      tree.max = Below(3) == 0 ? kUnbounded : tree.min + Below(3);
      return tree;
    }
    if (choice < 15) return WithParts(Kind::kBoth, 2, depth, false);
    return WithParts(Kind::kNot, 1, depth, false);
  }

 private:
  unsigned Below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }

  Tree Bytes() {
    Tree tree = {.kind = Kind::kBytes};
    tree.bytes.Add(static_cast<uint8_t>('a' + Below(num_letters_)));
    if (Below(2) == 0) tree.bytes.Add(static_cast<uint8_t>('a' + Below(num_letters_)));
    return tree;
  }

  Tree BehindLetter() {
    Tree tree = {.kind = Kind::kSequence, .parts = {Bytes()}};
    tree.parts.push_back({.kind = Kind::kRule, .rule = Below(static_cast<unsigned>(num_rules_))});
    if (Below(2) == 0) tree.parts.push_back(Bytes());
    return tree;
  }

  Tree WithParts(Kind kind, unsigned count, size_t depth, bool with_rules) {
    Tree tree = {.kind = kind};
    for (unsigned i = 0; i < count; ++i) tree.parts.push_back(Make(depth - 1, with_rules));
    return tree;
  }

  std::mt19937& random_;
  size_t num_rules_;
  unsigned num_letters_;
};

}  // namespace

bool NaiveGrammar::Matches(std::string_view text) const {
  return (NaiveMatcher(*this, text).From(rules[0], 0) >> text.size() & 1) != 0;
}

Node NaiveGrammar::Build(Expressions& expressions) const {
  std::vector<Node> nodes;
  for (size_t i = 0; i < rules.size(); ++i) nodes.push_back(expressions.NewRule());
  for (size_t i = 0; i < rules.size(); ++i) {
    expressions.Define(nodes[i], BuildTree(expressions, rules[i], nodes));
  }
  return nodes[0];
}

std::string NaiveGrammar::ToString() const {
  std::string text;
  for (size_t i = 0; i < rules.size(); ++i) {
    text += "R" + std::to_string(i) + " = " + TreeToString(rules[i]) + "; ";
  }
  return text;
}

NaiveGrammar RandomGrammar(std::mt19937& random, size_t num_rules, unsigned num_letters) {
  RandomTrees trees(random, num_rules, num_letters);
  NaiveGrammar grammar;
  for (size_t i = 0; i < num_rules; ++i) grammar.rules.push_back(trees.Make(3, true));
  return grammar;
}

std::vector<std::string> AllTexts(unsigned num_letters, size_t max_bytes) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == max_bytes) continue;
    for (unsigned letter = 0; letter < num_letters; ++letter) {
      texts.push_back(texts[i] + static_cast<char>('a' + letter));
    }
  }
  return texts;
}

}  // namespace cria::grammar
