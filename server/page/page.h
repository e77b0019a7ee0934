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

// The value of the header Content-Encoding, with which all of the files must be sent. There is no
// other form of them: all browsers read it, and whoever asks without Accept-Encoding takes any.
std::string_view PageContentEncoding();

// They hold nothing secret, so that a browser may load them without a key, and then ask for one.
std::span<const PageFile> PageFiles();

// The value of the header Content-Security-Policy, with which all of the files must be sent: the
// browser then loads nothing from elsewhere, runs no script but the page's own, and makes no
// element from text.
std::string_view PageContentSecurityPolicy();

}  // namespace cria::server
