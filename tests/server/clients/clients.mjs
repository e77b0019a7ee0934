// OpenAI's client for JavaScript against a server: node clients.mjs URL

import OpenAI from "openai";

function check(what, condition, detail = "") {
  if (!condition) {
    console.error(`clients: ${what} failed: ${JSON.stringify(detail)}`);
    process.exit(1);
  }
  console.log(`clients: ${what}`);
}

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "none", maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const messages = [{ role: "user", content: "Hello! Who are you?" }];
const request = { model, messages, temperature: 0, max_tokens: 40 };

const answer = await client.chat.completions.create(request);
const text = answer.choices[0].message.content;
check("JavaScript chat", text.length > 0, answer);

let streamed = "";
for await (const piece of await client.chat.completions.create({ ...request, stream: true })) {
  streamed += piece.choices[0]?.delta?.content ?? "";
}
check("JavaScript stream", streamed === text, [streamed, text]);

const schema = {
  type: "object",
  properties: { ok: { type: "boolean" } },
  required: ["ok"],
  additionalProperties: false,
};
const shaped = await client.chat.completions.create({
  ...request,
  response_format: { type: "json_schema", json_schema: { name: "ok", strict: true, schema } },
});
check("JavaScript JSON schema", typeof JSON.parse(shaped.choices[0].message.content).ok === "boolean");

const called = await client.chat.completions.create({
  ...request,
  max_tokens: 200,
  tools: [{ type: "function", function: { name: "f", parameters: schema } }],
  tool_choice: { type: "function", function: { name: "f" } },
});
const call = called.choices[0].message.tool_calls[0];
check("JavaScript tools", typeof JSON.parse(call.function.arguments).ok === "boolean", called);

const asked = { model, input: "Hello! Who are you?", temperature: 0, max_output_tokens: 40 };
const response = await client.responses.create(asked);
check("JavaScript responses", response.output_text.length > 0, response);
const events = client.responses.stream(asked);
let deltas = "";
for await (const event of events) {
  if (event.type === "response.output_text.delta") deltas += event.delta;
}
const final = await events.finalResponse();
check("JavaScript responses stream", deltas === response.output_text && final.output_text === deltas, final);

try {
  await client.chat.completions.create({ ...request, temperature: -1 });
  check("JavaScript errors", false);
} catch (error) {
  check("JavaScript errors", error.status === 400 && error.param === "temperature", error);
}

const controller = new AbortController();
const stream = await client.chat.completions.create(
  { ...request, stream: true, n: 16, max_tokens: 2000, ignore_eos: true },
  { signal: controller.signal },
);
for await (const piece of stream) {
  check("JavaScript cancelling begins", piece.choices.length === 1);
  break;
}
controller.abort();
check("JavaScript cancelling", true);
