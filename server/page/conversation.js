// A conversation is a tree of messages: an edited message or another answer stands beside the
// earlier one, which is kept.
//   {id, title, created, updated, settings: {system, thinking, sampling: {NAME: number}},
//    messages: [{id, parent, role, content, …}], chosen: {PARENT: id}}
// A message follows its parent in the list; the parent of the first messages is ''. A question may
// have `files`, [{name, text}]. An answer may have `model`, `reasoning`, `figures` and `end`:
// 'stop', 'length', 'stopped' by the person, 'failed', 'unfinished' or 'edited' by the person.
import {joinFiles} from './attachments.js';

const MAX_TITLE_CHARACTERS = 60;
const ENDS = ['stop', 'length', 'stopped', 'failed', 'unfinished', 'edited'];
// `earlier_tokens` are those of an answer before it was continued. They are in the prompt, too.
const FIGURES = [
  'tokens', 'earlier_tokens', 'prompt_tokens', 'cached_tokens', 'tokens_per_second',
  'first_token_seconds'
];

export const SAMPLING = [
  {
    name: 'temperature',
    label: 'Temperature',
    min: 0,
    max: 5,
    step: 0.05,
    hint: '0 takes the most likely token'
  },
  {
    name: 'top_k',
    label: 'Top k',
    min: 0,
    max: 1000000,
    step: 1,
    hint: 'the k most likely; 0 is all'
  },
  {
    name: 'top_p',
    label: 'Top p',
    min: 0,
    max: 1,
    step: 0.01,
    hint: 'the most likely whose sum is p'
  },
  {name: 'min_p', label: 'Min p', min: 0, max: 1, step: 0.01, hint: 'as a part of the most likely'},
  {
    name: 'repeat_penalty',
    label: 'Repeat penalty',
    min: 0.5,
    max: 3,
    step: 0.05,
    hint: '1 is none'
  },
  {name: 'max_tokens', label: 'Longest answer', min: 1, max: 1000000, step: 1, hint: 'in tokens'},
  {
    name: 'seed',
    label: 'Seed',
    min: 0,
    max: 4294967295,
    step: 1,
    hint: 'the same answers each time'
  },
];

// Without crypto.randomUUID, which browsers have only for pages of this host or with TLS.
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function defaultSettings() {
  return {system: '', thinking: true, sampling: {}};
}

export function newConversation(settings) {
  const now = Date.now();
  return {
    id: newId(),
    title: '',
    created: now,
    updated: now,
    settings: structuredClone(settings),
    messages: [],
    chosen: {}
  };
}

export function childrenOf(conversation, parent) {
  return conversation.messages.filter((message) => message.parent === parent);
}

// The messages that are shown: from the first to the last, at each place the one that is chosen.
export function pathOf(conversation) {
  const path = [];
  const children = Map.groupBy(conversation.messages, (message) => message.parent);
  for (let list = children.get(''); list; list = children.get(path.at(-1).id)) {
    const chosen = conversation.chosen[path.at(-1)?.id ?? ''];
    path.push(list.find((message) => message.id === chosen) ?? list.at(-1));
  }
  return path;
}

// Makes the path lead through a message.
export function choosePath(conversation, message) {
  const byId = new Map(conversation.messages.map((each) => [each.id, each]));
  for (let each = message; each; each = byId.get(each.parent)) {
    conversation.chosen[each.parent] = each.id;
  }
}

// The messages up to this one, as the server wants them.
export function requestMessages(conversation, lastId) {
  const byId = new Map(conversation.messages.map((message) => [message.id, message]));
  const messages = [];
  for (let message = byId.get(lastId); message; message = byId.get(message.parent)) {
    messages.unshift({role: message.role, content: joinFiles(message)});
  }
  const system = conversation.settings.system.trim();
  if (system) messages.unshift({role: 'system', content: system});
  return messages;
}

// `others` are further fields of the message.
export function addMessage(conversation, parent, role, content, others = {}) {
  const message = {id: newId(), parent, role, content, ...others};
  conversation.messages.push(message);
  conversation.chosen[parent] = message.id;
  conversation.updated = Date.now();
  if (!conversation.title && role === 'user') {
    conversation.title = titleFrom(content || message.files?.[0].name || '');
  }
  return message;
}

export function titleFrom(text) {
  const line = text.trim().split('\n')[0].replace(/\s+/g, ' ');
  const characters = Array.from(line);
  return characters.length <= MAX_TITLE_CHARACTERS ?
      line :
      `${characters.slice(0, MAX_TITLE_CHARACTERS - 1).join('').trimEnd()}…`;
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const timeOr = (value, other) =>
    Number.isFinite(value) && value >= 0 && value < 1e15 ? value : other;

// The settings in a value of unknown origin; what is not valid is left out.
export function readSettings(value) {
  const settings = defaultSettings();
  if (!isObject(value)) return settings;
  if (typeof value.system === 'string') settings.system = value.system;
  if (typeof value.thinking === 'boolean') settings.thinking = value.thinking;
  for (const {name, min, max} of SAMPLING) {
    const number = isObject(value.sampling) ? value.sampling[name] : undefined;
    if (Number.isFinite(number) && number >= min && number <= max) settings.sampling[name] = number;
  }
  return settings;
}

function readMessage(value, place) {
  const message = {id: value.id, parent: value.parent, role: value.role, content: value.content};
  if (!isObject(value) || typeof value.id !== 'string' || !value.id ||
      typeof value.parent !== 'string' || typeof value.content !== 'string' ||
      !['user', 'assistant'].includes(value.role)) {
    throw new TypeError(`${place} is not a message`);
  }
  if (Array.isArray(value.files)) {
    message.files =
        value.files
            .filter((file) => typeof file?.name === 'string' && typeof file.text === 'string')
            .map(({name, text}) => ({name, text}));
    if (!message.files.length) delete message.files;
  }
  if (typeof value.model === 'string') message.model = value.model;
  if (typeof value.reasoning === 'string') message.reasoning = value.reasoning;
  if (ENDS.includes(value.end)) message.end = value.end;
  if (isObject(value.figures)) {
    message.figures = {};
    for (const name of FIGURES) {
      if (Number.isFinite(value.figures[name])) message.figures[name] = value.figures[name];
    }
  }
  return message;
}

// A conversation from a value of unknown origin, such as a file. Throws a TypeError that says what
// is wrong.
export function readConversation(value, place = 'this') {
  if (!isObject(value) || typeof value.id !== 'string' || !/^[\w-]{1,64}$/.test(value.id) ||
      !Array.isArray(value.messages)) {
    throw new TypeError(`${place} is not a conversation`);
  }
  const conversation = {
    id: value.id,
    title: typeof value.title === 'string' ? titleFrom(value.title) : '',
    created: timeOr(value.created, Date.now()),
    updated: timeOr(value.updated, Date.now()),
    settings: readSettings(value.settings),
    messages: [],
    chosen: {}
  };
  const ids = new Set(['']);
  for (const [index, each] of value.messages.entries()) {
    const message = readMessage(each ?? {}, `message ${index + 1} of ${place}`);
    // A parent comes first, so that there are no circles.
    if (!ids.has(message.parent) || ids.has(message.id)) {
      throw new TypeError(`message ${index + 1} of ${place} has no place in it`);
    }
    ids.add(message.id);
    conversation.messages.push(message);
  }
  for (const [parent, id] of Object.entries(isObject(value.chosen) ? value.chosen : {})) {
    if (ids.has(parent) && ids.has(id)) conversation.chosen[parent] = id;
  }
  return conversation;
}
