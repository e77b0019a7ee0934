#pragma once

#include <span>
#include <string_view>

namespace cria::server {

// A file of the page with which people use the server in a browser. All of them are in the program.
struct PageFile {
  std::string_view path;  // The URL's: "/" is the page itself, all others are below "/page/".
  std::string_view content_type;
  std::string_view bytes;  // In the form of PageContentEncoding().
};

// The value of the header Content-Encoding that every answer with one of the files must have. The
// program has the files in this form only: every browser reads it, and a request that has no header
// Accept-Encoding accepts every encoding.
std::string_view PageContentEncoding();

// They hold nothing secret, so that a browser may load them without a key, and then ask for one.
std::span<const PageFile> PageFiles();

// The value of the header Content-Security-Policy, with which all of the files must be sent: the
// browser then loads nothing from elsewhere, runs no script but the page's own, and makes no
// element from text.
std::string_view PageContentSecurityPolicy();

}  // namespace cria::server
