// The plan of a server against what the server takes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/demo_model.h"
#include "cli/serve/json_request.h"
#include "cli/serve/server_program.h"
#include "server/api/api.h"
#include "server/http/raw_client.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/sanitizers.h"
#include "support/temporary_directory.h"

namespace cria::tests {
namespace {

using support::RawClient;

constexpr double kTolerance = 256 << 10;

class ServeMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (support::kHeapIsSanitized) GTEST_SKIP() << "the sanitizer's memory would be measured";
#if !defined(__x86_64__)
    GTEST_SKIP() << "the figures of other processors are computed";
#endif
  }

  static nlohmann::json Plan(const std::vector<std::string>& options) {
    std::vector<std::string> words = {
        support::kCriaProgram, "plan", "-m", DemoModel(), "-t", "2", "--serve", "--json"};
    words.insert(words.end(), options.begin(), options.end());
    const auto result = support::RunProgram(words);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return nlohmann::json::parse(result.output);
  }

  static double LineBytes(const nlohmann::json& plan, const std::string& begin) {
    double bytes = 0.0;
    for (const auto& line : plan["lines"]) {
      if (line["name"].get<std::string>().starts_with(begin)) bytes += line["bytes"].get<double>();
    }
    return bytes;
  }

  static void Report(const char* name, const ServerProgram& server, const nlohmann::json& plan) {
    std::printf(
        "%-12s private %9zu planned %9.0f, of these for the server %9.0f | mapped %9zu "
        "planned %9.0f | peak %9zu planned %9.0f | virtual %9zu planned %9.0f\n",
        name, server.MemoryBytes("RssAnon"), plan["private_bytes"].get<double>(),
        LineBytes(plan, "server"), server.MemoryBytes("RssFile"),
        plan["mapped_bytes"].get<double>(), server.MemoryBytes("VmHWM"),
        plan["peak_bytes"].get<double>(), server.MemoryBytes("VmPeak"),
        plan["address_space_bytes"].get<double>());
  }

  static std::string ChatRequest(const std::string& text) {
    return JsonRequest("/v1/chat/completions",
                       {{"temperature", 0}, {"messages", {{{"role", "user"}, {"content", text}}}}});
  }
};

TEST_F(ServeMemory, AfterAnswersItHasWhatIsPlannedWithoutClients) {
  const nlohmann::json plan = Plan({"-np", "2"});
  const ServerProgram server({"--port", "0", "-np", "2"});
  RawClient client = RawClient::ToPort(server.port());
  // Each begins differently, and all of it goes through the model.
  for (int i = 0; i < 12; ++i) {
    std::string text = std::to_string(i);
    for (int k = 0; k < 40; ++k) text += " Where do you run?";
    EXPECT_EQ(client.Ask(ChatRequest(text)).status, 200);
  }
  Report("answers", server, plan);
  const double planned = plan["private_bytes"].get<double>();
  EXPECT_LE(server.MemoryBytes("RssAnon"), planned + kTolerance);
  // What clients may take, this one does not.
  EXPECT_GE(server.MemoryBytes("RssAnon") + 2 * kTolerance,
            planned - LineBytes(plan, "server") - LineBytes(plan, "constraints") -
                LineBytes(plan, "a constraint that is read"));
  EXPECT_LE(server.MemoryBytes("VmHWM"), plan["peak_bytes"].get<double>() + kTolerance);
  EXPECT_LE(server.MemoryBytes("VmPeak"), plan["address_space_bytes"].get<double>());
}

TEST_F(ServeMemory, AsManyClientsAsMayBeTakeNoMoreThanIsPlanned) {
  const std::vector<std::string> options = {"-np", "2", "--max-connections", "200"};
  const nlohmann::json plan = Plan(options);
  std::vector<std::string> server_options = options;
  server_options.insert(server_options.end(), {"--port", "0"});
  const ServerProgram server(server_options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(RawClient::ToPort(server.port()));
    // Heads as long as may be, and bodies that do not end; most are refused because all bodies
    // together are bounded.
    clients.back().Send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX: " +
                        std::string(8000, 'x') + "\r\nContent-Length: 1000000\r\n\r\n");
    clients.back().SendSome(std::string(900'000, 'y'));
  }
  // Answered after all of the others were read.
  EXPECT_NE(clients.back().Read().status, 0);
  Report("connections", server, plan);
  EXPECT_LE(server.MemoryBytes("RssAnon"), plan["private_bytes"].get<double>() + kTolerance);
  EXPECT_LE(server.MemoryBytes("VmHWM"), plan["peak_bytes"].get<double>() + kTolerance);
}

TEST_F(ServeMemory, AHostileBodyTakesNoMoreThanIsPlanned) {
  const nlohmann::json plan = Plan({"-np", "2"});
  const ServerProgram server({"--port", "0", "-np", "2"});
  RawClient client = RawClient::ToPort(server.port());
  // As many values as a body holds.
  for (const std::string& value : {std::string("1,"), std::string("[],"), std::string("{},")}) {
    std::string body = R"({"messages":[)";
    while (body.size() + value.size() < (1 << 20) - 8) body += value;
    body += "1]}";
    client.Send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    EXPECT_EQ(client.Read().status, 400) << value;
  }
  Report("values", server, plan);
  EXPECT_LE(server.MemoryBytes("VmHWM"), plan["peak_bytes"].get<double>() + kTolerance);
}

// Chats whose values take as much as may be: as they are read, in the chat template, as a schema.
std::vector<std::string> LargeChats() {
  const auto repeat = [](const std::string& piece, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += piece;
    return text;
  };
  const auto list = [&](const std::string& piece, size_t count) {
    return "[" + repeat(piece + ",", count) + piece + "]";
  };
  const std::string user = R"({"role":"user","content":"a"})";
  std::vector<std::string> bodies;
  const auto add = [&](const std::string& field, const std::string& more_messages = "") {
    bodies.push_back(R"({"max_tokens":2,"messages":[)" + user + more_messages + "]," + field + "}");
  };
  // As many as may be, and more.
  for (const auto& [piece, count] :
       std::vector<std::pair<std::string, size_t>>{{"1", 145'000},
                                                   {"{}", 49'000},
                                                   {"[]", 300'000},
                                                   {"\"\"", 49'000},
                                                   {"1.50", 49'000},
                                                   {R"({"a":{}})", 16'000}}) {
    const std::string values = list(piece, count);
    add(R"("json_schema":{"enum":)" + values + "}");
    add(R"("tools":[{"type":"function","function":{"name":"a","parameters":{"enum":)" + values +
        "}}}]");
    add(R"("n":1)", R"(,{"role":"assistant","tool_calls":[{"function":{"name":"a","arguments":)"
                    R"({"a":)" +
                        list(piece, std::min<size_t>(count, 15'000)) + "}}}]}," + user);
  }
  const std::string call = R"({"function":{"name":"a"}})";
  for (const size_t count : {4'000, 40'000}) {
    add(R"("n":1)", R"(,{"role":"assistant","tool_calls":)" + list(call, count) + "}," + user);
  }
  // Values that are in texts.
  for (const char* const piece : {"{}", "1"}) {
    const std::string text = nlohmann::json(R"({"a":)" + list(piece, 140'000) + "}").dump();
    add(R"("n":1)", R"(,{"role":"assistant","tool_calls":)" +
                        list(R"({"function":{"name":"a","arguments":)" + text + "}}", 1) + "}," +
                        user);
  }
  return bodies;
}

TEST_F(ServeMemory, WhatIsMadeOfALargeRequestTakesNoMoreThanItsLine) {
  // A template that writes everything.
  const support::TemporaryDirectory folder;
  const std::string chat_template = folder / "tools.jinja";
  support::WriteFile(chat_template,
                     "{% if tools %}<tools>{% for t in tools %}{{ t | tojson }}{% endfor %}"
                     "</tools>{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}"
                     "{% for c in m.tool_calls %}<tool_call>{{ c.function | tojson }}</tool_call>"
                     "{% endfor %}{% endfor %}{% if add_generation_prompt %}[a]{% endif %}");
  const std::string model = folder / "tools.cria";
  const auto converted = support::RunProgram(
      {support::kModelConverter, "--fast", support::kDemoCheckpoint, "-o", model, "--weights",
       "int8", "--no-verify", "--chat-template", chat_template});
  ASSERT_EQ(converted.exit_code, 0) << converted.error;
  for (const std::string& path : {DemoModel(), model}) {
    const ServerProgram server({"-m", path, "--port", "0", "-np", "2"});
    RawClient client = RawClient::ToPort(server.port());
    client.Ask(ChatRequest("Who are you?"));
    const double line = LineBytes(Plan({"-np", "2"}), "server: a large request");
    for (const std::string& body : LargeChats()) {
      // The difference is negative if the server gives memory back before the peak is reset.
      const auto before = static_cast<double>(server.MemoryBytes("VmRSS"));
      // The peak begins anew.
      support::WriteFile("/proc/" + std::to_string(server.process()) + "/clear_refs", "5");
      client.Send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                  std::to_string(body.size()) + "\r\n\r\n" + body);
      EXPECT_EQ(client.Read().status, 400);
      const double taken = static_cast<double>(server.MemoryBytes("VmHWM")) - before;
      // Its text is one of the bodies that wait.
      EXPECT_LE(taken, line + static_cast<double>(body.size()) + kTolerance) << body.substr(0, 150);
    }
  }
}

// Reads the answers of all clients at once, as their server makes them in an order of its own, and
// gives up a client that takes nothing of a long answer. Returns their statuses.
std::vector<int> ReadAll(std::vector<RawClient>& clients) {
  std::vector<int> statuses(clients.size());
  std::vector<std::jthread> readers;
  for (size_t i = 0; i < clients.size(); ++i) {
    readers.emplace_back([&, i] { statuses[i] = clients[i].Read().status; });
  }
  for (std::jthread& reader : readers) reader.join();
  return statuses;
}

// Forms of an answer of which each takes as much as may be while it is read.
std::vector<std::pair<std::string, nlohmann::json>> LargeForms() {
  const auto list = [](const std::string& item, size_t count) {
    return nlohmann::json(std::vector<nlohmann::json>(count, nlohmann::json::parse(item)));
  };
  const nlohmann::json choices = list(R"({"anyOf":[{},{}]})", 150);
  std::vector<std::pair<std::string, nlohmann::json>> forms;
  for (const char* const value : {"{}", "[1]", R"({"a":1})"}) {
    forms.emplace_back("json_schema", nlohmann::json{{"enum", list(value, 2'600)}});
  }
  for (const size_t count : {1'000, 4'000, 7'000}) {
    forms.emplace_back(
        "json_schema",
        nlohmann::json{{"type", "object"}, {"required", list("\"\"", count)}, {"allOf", choices}});
  }
  for (const char* const value : {"{}", "[]"}) {
    forms.emplace_back("grammar", "root ::= %json {\"enum\":" + list(value, 60'000).dump() + "}");
  }
  std::string pattern;
  for (int i = 0; i < 30'000; ++i) pattern += "a?";
  forms.emplace_back("guided_regex", pattern);
  return forms;
}

TEST_F(ServeMemory, FormsThatAllSequencesReadAtOnceTakeNoMoreThanTheirLine) {
  const nlohmann::json plan = Plan({"-np", "4"});
  const ServerProgram server({"--port", "0", "-np", "4"});
  std::vector<RawClient> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(RawClient::ToPort(server.port()));
  const auto ask_all = [&](const std::string& field, const nlohmann::json& form) {
    for (size_t i = 0; i < clients.size(); ++i) {
      clients[i].Send(
          JsonRequest("/v1/completions", {{"prompt", std::string(1, static_cast<char>('a' + i))},
                                          {"max_tokens", 2},
                                          {field, form}}));
    }
    for (const int status : ReadAll(clients)) EXPECT_THAT(status, testing::AnyOf(200, 400));
  };
  // Afterwards, the memory of all constraints has been in use: the first form needs more than there
  // is, the second one has states.
  for (int i = 0; i < 2; ++i) {
    ask_all("guided_regex", std::string(65'000, 'a'));
    ask_all("json_schema", {{"enum", std::vector<int>(2'000, i)}});
  }
  // One of the requests is read at a time; its values are fewer than its line has.
  constexpr double kRequestBytes = 1 << 20;
  const double line = LineBytes(plan, "a constraint that is read");
  EXPECT_GT(line, 0.0);
  for (const auto& [field, form] : LargeForms()) {
    const auto before = static_cast<double>(server.MemoryBytes("VmRSS"));
    support::WriteFile("/proc/" + std::to_string(server.process()) + "/clear_refs", "5");
    ask_all(field, form);
    const double taken = static_cast<double>(server.MemoryBytes("VmHWM")) - before;
    const std::string text = form.dump();
    std::printf("%-12s %zu bytes: %.0f taken of %.0f\n", field.c_str(), text.size(), taken, line);
    EXPECT_LE(taken,
              line + kRequestBytes + 4.0 * 2.0 * static_cast<double>(text.size()) + kTolerance)
        << field << ": " << text.substr(0, 60);
  }
  EXPECT_LE(server.MemoryBytes("RssAnon"), plan["private_bytes"].get<double>() + kTolerance);
}

// Bodies that are as large as may be, for every path: each has the fields of all paths.
std::vector<std::string> LargeBodies() {
  constexpr size_t kBytes = 1'000'000;
  const auto with_text = [](const std::string& text) {
    return nlohmann::json({{"content", text},
                           {"prompt", text},
                           {"model", "m"},
                           {"filename", "f"},
                           {"with_pieces", true},
                           {"max_tokens", 2},
                           {"tokens", nlohmann::json::array()}})
        .dump();
  };
  const auto repeat = [](const std::string& piece, size_t bytes) {
    std::string text;
    while (text.size() + piece.size() <= bytes) text += piece;
    return text;
  };
  std::vector<std::string> bodies;
  for (const char* const piece : {"ab ", " ", "x", "\xC3\xA9 ", "\x01"}) {
    const size_t escaped = *piece == '\x01' ? 6 : 1;
    const std::string text = repeat(piece, kBytes / escaped);
    bodies.push_back(with_text(repeat(piece, kBytes / escaped / 2)));
    bodies.push_back(
        nlohmann::json({{"messages", {{{"role", "user"}, {"content", text}}}}, {"max_tokens", 2}})
            .dump());
    bodies.push_back(nlohmann::json({{"messages", {{{"role", text}, {"content", ""}}}}}).dump());
  }
  bodies.push_back(R"({"prompt":"a","tokens":[)" + repeat("300,", kBytes / 2) + "300]}");
  bodies.push_back(R"({"max_tokens":2,"messages":[)" +
                   repeat(R"({"role":"user","content":"a"},)", 200'000) +
                   R"({"role":"user","content":"a"}]})");
  bodies.push_back(R"({"max_tokens":2,"prompt":"a","messages":[{"role":"user","content":"a"}],)"
                   R"("chat_template_kwargs":{"a":[)" +
                   repeat("{},", kBytes / 3) + "{}]}}");
  bodies.push_back(R"({"max_tokens":2,"prompt":"a","messages":[{"role":"user","content":"a"}],)"
                   R"("tools":[{"function":{"name":"a","parameters":{"enum":[)" +
                   repeat("{},", 24'000) + "{}]}}}]}");
  // Fields of messages that nothing knows.
  std::string fields;
  for (int i = 0; i < 1000; ++i) fields += ",\"f" + std::to_string(i) + "\":1";
  bodies.push_back(R"({"max_tokens":2,"messages":[{"role":"user","content":"a")" + fields +
                   repeat(R"(},{"role":"user","content":"a")" + fields, kBytes - 50'000) + "}]}");
  // All of an answer's options that take memory, as long as the context has room.
  bodies.push_back(R"({"prompt":"a","messages":[{"role":"user","content":"a"}],"n":2,"top_k":0,)"
                   R"("logprobs":true,"top_logprobs":20,"n_probs":20,"ignore_eos":true,)"
                   R"("repeat_penalty":1.1,"repeat_last_n":-1,"dry_multiplier":0.8,)"
                   R"("stream":false,"stop":[")" +
                   repeat("a", 4000) + R"("]})");
  bodies.push_back(R"({"max_tokens":2,"messages":[{"role":"user","content":[)" +
                   repeat(R"({"type":"tool_result","tool_use_id":"a"},)", kBytes - 100) +
                   R"({"type":"text","text":"a"}]}]})");
  bodies.push_back(R"({"max_tokens":2,"prompt":"a","input_suffix":"a","input_prefix":")" +
                   repeat("a b", kBytes - 100) + "\"}");
  bodies.push_back(R"({"max_tokens":2,"prompt":"a","grammar":"root ::= %json {\"enum\":[)" +
                   repeat("{},", 240'000) + R"({}]}","messages":[{"role":"user","content":"a"}]})");
  bodies.push_back(R"({"max_tokens":2,"prompt":"a","grammar":")" + repeat("a", kBytes) +
                   R"(","messages":[{"role":"user","content":"a"}]})");
  const std::string long_text = repeat("ab ", kBytes / 2);
  bodies.push_back(nlohmann::json({{"instructions", long_text}, {"input", long_text}}).dump());
  const std::string answer = R"({"max_output_tokens":2,"input":[)";
  for (const char* const item :
       {R"({"role":"user","content":"a"},)", R"({"role":"system","content":""},)",
        R"({"type":"function_call","call_id":"","name":""},)",
        R"({"type":"reasoning","content":[{"type":"reasoning_text","text":"a"}]},)"}) {
    bodies.push_back(answer + repeat(item, 200'000) + R"({"role":"user","content":"a"}]})");
  }
  bodies.push_back(
      R"({"max_output_tokens":2,"input":"a","tools":[{"name":"a","parameters":{"enum":[)" +
      repeat("{},", 24'000) + "{}]}}]}");
  for (const char* const is_streamed : {"true", "false"}) {
    bodies.push_back(R"({"input":"a","include":["message.output_text.logprobs"],"top_logprobs":20,)"
                     R"("top_k":0,"ignore_eos":true,"instructions":")" +
                     repeat("a", 4000) + R"(","stream":)" + is_streamed + "}");
  }
  return bodies;
}

TEST_F(ServeMemory, NoPathTakesMoreThanIsPlanned) {
  const support::TemporaryDirectory folder;
  const std::vector<std::string> options = {"-np", "4"};
  const nlohmann::json plan = Plan(options);
  const double planned = plan["peak_bytes"].get<double>() + kTolerance;
  const ServerProgram server({"--port", "0", "-np", "4", "--slot-save-path", folder.path()});
  const std::vector<std::string> bodies = LargeBodies();
  std::vector<RawClient> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(RawClient::ToPort(server.port()));
  for (const std::string& route : server::ApiPathsOfHandlers()) {
    const size_t space = route.find(' ');
    std::string path = route.substr(space + 1);
    if (path.ends_with('*')) path.replace(path.size() - 1, 1, "0?action=save");
    const bool is_post = route.starts_with("POST");
    for (size_t b = 0; b < (is_post ? bodies.size() : 1); ++b) {
      const std::string body = is_post ? bodies[b] : "";
      for (RawClient& client : clients) {
        client.Send(route.substr(0, space) + " " + path +
                    " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body);
      }
      for (const int status : ReadAll(clients)) {
        EXPECT_THAT(status, testing::AnyOf(200, 400, 404)) << route << ", body " << b;
      }
      ASSERT_LE(server.MemoryBytes("VmHWM"), planned) << route << ", body " << b;
    }
  }
  Report("paths", server, plan);
  // What was freed went back to the system.
  EXPECT_LE(server.MemoryBytes("RssAnon"),
            plan["private_bytes"].get<double>() - LineBytes(plan, "server: a large request"));
}

}  // namespace
}  // namespace cria::tests
