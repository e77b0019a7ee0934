// Finds a text in the conversations that are kept.

const AROUND = 40;  // Characters of an excerpt on each side.

// What is typed, as an expression: capitals do not matter, nor how many spaces there are. Null if
// nothing is typed.
export function searchPattern(query) {
  const words = query.trim().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  const escaped = words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  return new RegExp(escaped.join('\\s+'), 'giu');
}

// Where the pattern occurs in a text, as [begin, end]…, at most `limit`.
export function findAll(pattern, text, limit = 1000) {
  const found = [];
  for (const match of text.matchAll(pattern)) {
    found.push([match.index, match.index + match[0].length]);
    if (found.length === limit) break;
  }
  return found;
}

// A text in parts, of which those with `isMatch` are to be marked.
export function markParts(pattern, text) {
  const parts = [];
  let at = 0;
  for (const [begin, end] of findAll(pattern, text)) {
    parts.push({text: text.slice(at, begin)}, {text: text.slice(begin, end), isMatch: true});
    at = end;
  }
  parts.push({text: text.slice(at)});
  return parts.filter((part) => part.text);
}

// The line around a match.
function excerptOf(text, [begin, end]) {
  const from = Math.max(0, begin - AROUND);
  const to = Math.min(text.length, end + AROUND);
  const line = text.slice(from, to).replace(/\s+/g, ' ').trim();
  return (from ? '…' : '') + line + (to < text.length ? '…' : '');
}

// The texts of a message that are searched.
const textsOf =
    ({content, files = []}) => [content, ...files.flatMap(({name, text}) => [name, text])];

// The conversations with the text in their titles or messages, as {conversation, message, excerpt}:
// the newest message that has it, and the line around it. Both are undefined if only the title has.
export function searchConversations(pattern, conversations) {
  const results = [];
  for (const conversation of conversations) {
    let found;
    for (const message of conversation.messages.toReversed()) {
      for (const text of textsOf(message)) {
        const [match] = findAll(pattern, text, 1);
        if (match) found ??= {message, excerpt: excerptOf(text, match)};
      }
      if (found) break;
    }
    if (found || findAll(pattern, conversation.title, 1).length) {
      results.push({conversation, ...found});
    }
  }
  return results;
}
