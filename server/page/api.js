// The requests that the page makes. All addresses are relative, so that the page also works where a
// proxy puts it into a folder.
import {readEvents} from './event_stream.js';

const KEY = 'cria.key';
const QUICK_MS = 20000;  // For requests that need no model.

// `kind` says what can be done about it: 'key', 'busy', 'network', 'refused', 'broken' or 'server'.
export class ApiError extends Error {
  constructor(kind, message, retryAfterSeconds = 0) {
    super(message);
    this.kind = kind;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

async function messageOf(response) {
  try {
    const text = await response.text();
    const error = JSON.parse(text).error;
    return String(error?.message ?? error ?? '');
  } catch {
    return '';
  }
}

// What a status that is not 2xx means.
async function refusal(response) {
  const message = await messageOf(response);
  switch (response.status) {
    case 401:
      return new ApiError('key', message);
    case 429: {
      const seconds = Number(response.headers.get('Retry-After'));
      return new ApiError('busy', message, Number.isFinite(seconds) ? seconds : 0);
    }
    case 502:
    case 503:
    case 504:
      return new ApiError('server', message || 'the server is not ready');
    default:
      return new ApiError(
          response.status < 500 ? 'refused' : 'server',
          message || `the server answered with status ${response.status}`);
  }
}

export class Api {
  // `session` keeps the key until the browser's tab is closed.
  constructor(session = sessionStorage) {
    this.session = session;
  }

  get key() {
    return this.session.getItem(KEY) ?? '';
  }

  set key(key) {
    if (key)
      this.session.setItem(KEY, key);
    else
      this.session.removeItem(KEY);
  }

  async fetch(path, options = {}) {
    const headers = {...options.headers};
    // With other characters, no key can be right, and the browser would refuse the request.
    if (/^[!-~]+$/.test(this.key)) headers.Authorization = `Bearer ${this.key}`;
    let response;
    try {
      response = await fetch(path, {
        ...options,
        headers,
        credentials: 'omit',
        cache: 'no-store',
        redirect: 'error',
        referrerPolicy: 'no-referrer'
      });
    } catch (error) {
      if (options.signal?.aborted && error.name === 'AbortError') throw error;
      throw new ApiError('network', 'the server cannot be reached');
    }
    if (!response.ok) throw await refusal(response);
    return response;
  }

  async getJson(path) {
    const response = await this.fetch(path, {signal: AbortSignal.timeout(QUICK_MS)});
    try {
      return await response.json();
    } catch {
      throw new ApiError('server', `the answer of ${path} is not JSON`);
    }
  }

  async models() {
    const list = (await this.getJson('v1/models'))?.data;
    return Array.isArray(list) ? list : [];
  }

  props() {
    return this.getJson('props');
  }

  async metrics() {
    const response = await this.fetch('metrics', {signal: AbortSignal.timeout(QUICK_MS)});
    return response.text();
  }

  // How many tokens a text has. Without a limit of time: it waits for the answers of others.
  async countTokens(model, content) {
    const response = await this.fetch('tokenize', {
      method: 'POST',
      headers: {'Content-Type': 'application/json'},
      body: JSON.stringify({...(model && {model}), content}),
    });
    const {tokens} = await response.json();
    if (!Array.isArray(tokens)) throw new ApiError('server', 'the tokens are not a list');
    return tokens.length;
  }

  // Yields the objects of a streamed answer.
  async * chat(request, signal) {
    const response = await this.fetch('v1/chat/completions', {
      method: 'POST',
      signal,
      headers: {'Content-Type': 'application/json'},
      body: JSON.stringify({...request, stream: true, stream_options: {include_usage: true}}),
    });
    let isWhole = false;
    try {
      for await (const data of readEvents(response.body)) {
        if (data === '[DONE]') {
          isWhole = true;
          break;
        }
        const part = JSON.parse(data);
        if (part.error) throw new ApiError('server', String(part.error.message ?? part.error));
        yield part;
      }
    } catch (error) {
      if (error instanceof ApiError || error.name === 'AbortError' || signal.aborted) throw error;
      throw new ApiError('broken', 'the connection ended before the answer');
    }
    if (!isWhole && !signal.aborted)
      throw new ApiError('broken', 'the connection ended before the answer');
  }
}

// What a person can do about an error, as {text, canRetry}.
export function explain(error) {
  const because = error.message ? ` (${error.message})` : '';
  switch (error.kind) {
    case 'key':
      return {
        text: 'The server wants a key. Enter it, then try again.',
        canRetry: true,
        wantsKey: true
      };
    case 'busy':
      return {
        text: `The server is busy with other conversations${because}. ` +
            (error.retryAfterSeconds > 0 ? `Try again in ${Math.ceil(error.retryAfterSeconds)} s.` :
                                           'Try again in a moment.'),
        canRetry: true
      };
    case 'network':
      return {
        text:
            'The server cannot be reached. Check that cria-serve is running and that this device ' +
            'is still in its network, then try again.',
        canRetry: true
      };
    case 'broken':
      return {
        text:
            'The connection ended before the answer did. What had arrived is kept; try again for ' +
            'a whole answer.',
        canRetry: true
      };
    case 'refused':
      return {
        text: `The server refused this${because}. Change the message or the settings, or begin a ` +
            'new conversation if this one is too long.',
        canRetry: true
      };
    default:
      return {
        text: `The server failed${because}. Try again; its log may say more.`,
        canRetry: true
      };
  }
}
