#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cria::server {

// The text of a section of an answer, and where its tokens end. A context of tokens has the section
// at its end, perhaps without the last token. Places are bytes of the text.
class SectionText {
 public:
  // `context_tokens` are before the section.
  void Begin(size_t context_tokens);
  void AddToken(std::string_view text);
  // Text that no token ends with.
  void AddRest(std::string_view text) { text_ += text; }

  const std::string& text() const { return text_; }
  // How many tokens the context has if it has all of the section.
  size_t end_tokens() const { return begin_tokens_ + token_ends_.size(); }

  struct Cut {
    size_t context_tokens = 0;  // Whose text is before the place.
    size_t dropped_tokens = 0;  // Tokens of the section behind these.
    std::string_view rest;      // The text of the dropped tokens that is before the place.
  };
  // How a context of so many tokens, of which the section's may be fewer, is cut at a place.
  Cut CutAt(size_t place, size_t context_tokens) const;
  // Makes the tokens that end behind the place a section of their own. Returns the place in its
  // text.
  size_t BeginAt(size_t place);

 private:
  size_t TokensBefore(size_t place) const;

  size_t begin_tokens_ = 0;
  std::string text_;
  std::vector<size_t> token_ends_;
};

}  // namespace cria::server
