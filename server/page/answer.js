// One answer while it arrives.
import {requestMessages} from './conversation.js';

const SAVE_EVERY_MS = 1000;

// `thinkingVariable` turns reasoning on and off in the chat template, if it has one.
function requestFor(conversation, message, continues, model, thinkingVariable) {
  const {settings} = conversation;
  const lastId = continues ? message.id : message.parent;
  const request = {messages: requestMessages(conversation, lastId), ...settings.sampling};
  if (model) request.model = model;
  if (continues) {
    // The server has no reasoning behind the beginning of an answer.
    Object.assign(request, {continue_final_message: true, add_generation_prompt: false});
  } else if (thinkingVariable) {
    request.chat_template_kwargs = {[thinkingVariable]: settings.thinking};
  }
  return request;
}

export class Answer {
  // `message` is filled in while the answer arrives; if it has content, the answer goes on with it.
  // `onChange` is called after each part, `onSave` now and then, `onToken` for each token with the
  // time.
  constructor(conversation, message, {onChange, onSave, onToken}) {
    this.conversation = conversation;
    this.message = message;
    this.continues = message.content !== '';
    this.onChange = onChange;
    this.onSave = onSave;
    this.onToken = onToken;
    this.controller = new AbortController();
    this.began = performance.now();
    this.firstToken = 0;
    this.lastToken = 0;
    this.tokens = 0;
    this.isRunning = false;
    this.isLeft = false;  // The page is being closed, which ends the connection.
    this.error = null;
  }

  stop() {
    this.controller.abort();
  }

  leave() {
    this.isLeft = true;
    if (this.isRunning) this.onSave(this);
  }

  secondsSoFar() {
    return (performance.now() - this.began) / 1000;
  }

  // `server` is a promise of {model, thinkingVariable}.
  async run(api, server) {
    this.isRunning = true;
    this.message.end = 'unfinished';
    if (this.continues) this.keepTokens();
    let saved = performance.now();
    try {
      const {model, thinkingVariable} = await server;
      if (model) this.message.model = model;
      const request =
          requestFor(this.conversation, this.message, this.continues, model, thinkingVariable);
      for await (const part of api.chat(request, this.controller.signal)) {
        this.take(part);
        this.onChange(this);
        if (performance.now() - saved > SAVE_EVERY_MS) {
          saved = performance.now();
          this.onSave(this);
        }
      }
      if (this.message.end === 'unfinished') this.message.end = 'stop';
    } catch (error) {
      const wasStopped = this.controller.signal.aborted;
      if (!this.isLeft) this.message.end = wasStopped ? 'stopped' : 'failed';
      if (!wasStopped) this.error = error;
    }
    this.message.content = this.message.content.trim();
    this.isRunning = false;
    this.onSave(this);
    this.onChange(this);
  }

  take(part) {
    const choice = part.choices?.[0];
    const {content, reasoning_content: reasoning} = choice?.delta ?? {};
    if (reasoning) this.message.reasoning = (this.message.reasoning ?? '') + reasoning;
    if (content) this.message.content += content;
    if (content || reasoning) this.countToken();
    if (choice?.finish_reason) {
      this.message.end = choice.finish_reason === 'length' ? 'length' : 'stop';
    }
    if (part.usage || part.timings) this.takeFigures(part.usage ?? {}, part.timings ?? {});
  }

  keepTokens() {
    const {tokens = 0, earlier_tokens: earlier = 0} = this.message.figures ?? {};
    this.message.figures = {earlier_tokens: earlier + tokens};
  }

  // A part of the stream has one token, but for the few that are not whole characters.
  countToken() {
    this.lastToken = performance.now();
    if (this.tokens++ === 0) this.firstToken = this.lastToken;
    this.message.figures = {
      ...this.message.figures,
      tokens: this.tokens,
      first_token_seconds: (this.firstToken - this.began) / 1000
    };
    this.onToken(this.lastToken);
  }

  takeFigures(usage, timings) {
    const figures = this.message.figures ?? {};
    const seconds = (this.lastToken - this.firstToken) / 1000;
    const values = {
      tokens: usage.completion_tokens ?? timings.predicted_n,
      prompt_tokens: usage.prompt_tokens ?? timings.prompt_n,
      cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? timings.cache_n,
      tokens_per_second: timings.predicted_per_second ??
          (this.tokens > 1 && seconds > 0 ? (this.tokens - 1) / seconds : undefined),
    };
    for (const [name, value] of Object.entries(values)) {
      if (Number.isFinite(value)) figures[name] = value;
    }
    this.message.figures = figures;
  }
}
