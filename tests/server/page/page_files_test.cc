#include "server/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// In the program and on the network.
constexpr size_t kMaxPageBytes = 50'000;

// A file of the page as a browser sees it.
struct PageText {
  std::string path;
  std::string content_type;
  std::string text;
};

std::string Unpack(std::string_view bytes) {
  const support::TemporaryDirectory folder;
  std::ofstream(folder / "file.gz", std::ios::binary) << bytes;
  const support::RunResult unpacked = support::RunProgram({"gzip", "-dc", folder / "file.gz"});
  EXPECT_EQ(unpacked.exit_code, 0) << unpacked.error;
  return unpacked.output;
}

const std::vector<PageText>& PageTexts() {
  static const std::vector<PageText> texts = [] {
    std::vector<PageText> unpacked;
    for (const PageFile& file : PageFiles()) {
      unpacked.push_back(
          {std::string(file.path), std::string(file.content_type), Unpack(file.bytes)});
    }
    return unpacked;
  }();
  return texts;
}

std::string TextOf(std::string_view path) {
  for (const PageText& file : PageTexts()) {
    if (file.path == path) return file.text;
  }
  ADD_FAILURE() << "there is no " << path;
  return "";
}

// All that the first group of a pattern matches.
std::vector<std::string> FindAll(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

std::filesystem::path SourceOf(std::string_view path) {
  const std::filesystem::path folder = support::SourcePath("server/page");
  return folder / (path == "/" ? "index.html" : std::filesystem::path(path).filename());
}

// What embedding leaves of a script or style, line by line.
std::string Stripped(const std::string& text, bool is_script) {
  std::istringstream lines(text);
  std::string stripped;
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
    if (is_script && line.starts_with("//")) line.clear();
    stripped += line + "\n";
  }
  return stripped;
}

TEST(PageFiles, HaveOnePathAndTheTypeOfTheirName) {
  std::set<std::string_view> paths;
  for (const PageFile& file : PageFiles()) {
    EXPECT_TRUE(paths.insert(file.path).second) << file.path;
    EXPECT_FALSE(file.bytes.empty()) << file.path;
    const std::string_view type = file.path == "/"              ? "text/html; charset=utf-8"
                                  : file.path.ends_with(".js")  ? "text/javascript; charset=utf-8"
                                  : file.path.ends_with(".css") ? "text/css; charset=utf-8"
                                                                : "image/svg+xml";
    EXPECT_EQ(file.content_type, type) << file.path;
    EXPECT_TRUE(file.path == "/" || file.path.starts_with("/page/")) << file.path;
  }
  EXPECT_TRUE(paths.contains("/"));
}

TEST(PageFiles, AreSmall) {
  size_t bytes = 0;
  for (const PageFile& file : PageFiles()) bytes += file.bytes.size();
  RecordProperty("bytes", static_cast<int>(bytes));
  EXPECT_LT(bytes, kMaxPageBytes);
}

TEST(PageFiles, AreTheSourcesWithoutWhatABrowserSkips) {
  for (const PageText& file : PageTexts()) {
    const std::string source = support::ReadFile(SourceOf(file.path));
    const bool is_script = file.path.ends_with(".js");
    const bool is_stripped = is_script || file.path.ends_with(".css");
    EXPECT_EQ(file.text, is_stripped ? Stripped(source, is_script) : source) << file.path;
  }
}

TEST(PageFiles, AreAllThatTheFolderHas) {
  std::set<std::string> embedded;
  for (const PageText& file : PageTexts()) embedded.insert(SourceOf(file.path).filename());
  for (const std::string& name : support::FileNames(support::SourcePath("server/page"))) {
    const std::string extension = std::filesystem::path(name).extension();
    if (extension == ".js" || extension == ".css" || extension == ".html" || extension == ".svg") {
      EXPECT_TRUE(embedded.contains(name)) << name;
    }
  }
}

TEST(PageFiles, NameEachOtherAndNothingElse) {
  std::set<std::string> named = {"/"};
  for (const std::string& name : FindAll(TextOf("/"), R"re((?:src|href)="([^"#][^"]*)")re")) {
    named.insert("/" + name);
  }
  for (const PageText& file : PageTexts()) {
    if (!file.path.ends_with(".js")) continue;
    for (const std::string& name : FindAll(file.text, R"re(from '\./([^']+)';)re")) {
      named.insert("/page/" + name);
    }
  }
  std::set<std::string> paths;
  for (const PageText& file : PageTexts()) paths.insert(file.path);
  EXPECT_EQ(named, paths);
}

TEST(PageFiles, NameNoOtherHost) {
  for (const PageText& file : PageTexts()) {
    for (const std::string& url : FindAll(file.text, R"re(((?:https?:|["'(])//[^\s"')]*))re")) {
      // The names of SVG's elements, which nothing loads.
      EXPECT_EQ(url, "http://www.w3.org/2000/svg") << file.path;
    }
    EXPECT_THAT(file.text, AllOf(Not(HasSubstr("url(")), Not(HasSubstr("@import")))) << file.path;
  }
}

TEST(PageFiles, HaveNoScriptOrStyleInTheHtml) {
  const std::string html = TextOf("/");
  for (const std::string& script : FindAll(html, "<script([^>]*>[^<]*)")) {
    EXPECT_THAT(script, AllOf(HasSubstr("src="), testing::EndsWith(">"))) << script;
  }
  EXPECT_THAT(
      html, AllOf(Not(HasSubstr("<style")), Not(HasSubstr("style=")), Not(HasSubstr("javascript:")),
                  Not(HasSubstr("<base")), Not(HasSubstr("http-equiv"))));
  EXPECT_THAT(FindAll(html, R"re(\s(on[a-z]+=))re"), testing::IsEmpty());
}

TEST(PageFiles, MakeNoElementsFromText) {
  for (const PageText& file : PageTexts()) {
    for (const char* name : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                             "DOMParser", "createContextualFragment", "setHTML", "srcdoc", "eval(",
                             "new Function", "setAttribute('style'"}) {
      EXPECT_THAT(file.text, Not(HasSubstr(name))) << file.path;
    }
  }
}

TEST(PageContentSecurityPolicy, AllowsOnlyTheOwnFiles) {
  const std::string policy(PageContentSecurityPolicy());
  for (const char* directive :
       {"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
        "img-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"}) {
    EXPECT_THAT("; " + policy + ";", HasSubstr("; " + std::string(directive) + ";"));
  }
  EXPECT_THAT(policy, AllOf(Not(HasSubstr("unsafe")), Not(HasSubstr("*")), Not(HasSubstr("http")),
                            Not(HasSubstr("data:")), Not(HasSubstr("\n"))));
}

}  // namespace
}  // namespace cria::server
